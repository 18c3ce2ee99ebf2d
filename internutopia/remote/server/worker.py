"""Worker process of a session: it builds the envs, then does one call after the other.

Messages are pickles behind their length, over a socket that only the server and this process have: what a client sends
is decoded and checked before. The process ends when the server closes the socket or dies, at any moment of a call.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import struct
import threading
import traceback
from contextlib import closing
from dataclasses import dataclass
from io import BufferedRWPair
from typing import Any

import mujoco
from gymnasium import spaces

from internutopia.config import Config
from internutopia.remote.server.service_error import ServiceError
from internutopia.remote.server.session_calls import Progress, SessionCalls
from internutopia.rl.action_format import ActionFormat
from internutopia.util.encoding import encode

LENGTH = struct.Struct('>Q')
"""Prefix of every message: its length in bytes."""


@dataclass(frozen=True)
class Description:
    """Description of an env for clients."""

    observation_size: int
    action_format: ActionFormat
    step_dt: float
    mujoco: str
    """Version of MuJoCo."""


@dataclass(frozen=True)
class Done:
    """Answer to a call that was done."""

    body: bytes
    progress: Progress


@dataclass(frozen=True)
class Failed:
    """Answer if the envs cannot be used any more, or could not be built; the process ends."""

    message: str
    traceback: str


def serve_session(server: socket.socket) -> None:
    """Run a session's process. First message: config and description; then calls `(name, arguments, media_type)`."""
    _exit_with(server)
    with server.makefile('rwb') as stream:
        try:
            config, description = _receive(stream)
            calls = SessionCalls(config, description.observation_size, description.action_format)
            while True:
                _send(stream, _answer(calls, *_receive(stream)))
        except EOFError:
            pass
        except Exception as error:
            _send(stream, _failure(error))


def serve_description(server: socket.socket) -> None:
    """Run a process that tries the config in its first message and sends a description of its envs."""
    _exit_with(server)
    with server.makefile('rwb') as stream:
        try:
            _send(stream, _describe(_receive(stream)))
        except Exception as error:
            _send(stream, _failure(error))


def _answer(calls: SessionCalls, name: str, arguments: dict[str, Any], media_type: str) -> Done | ServiceError:
    """Make a call; the error with which it is refused is an answer."""
    try:
        reply = calls.by_name[name](**arguments)
    except ServiceError as error:
        return error
    return Done(reply if isinstance(reply, bytes) else encode(reply, media_type), calls.progress)


def _describe(config: Config) -> Description:
    from internutopia.rl.vector_env import VectorEnv

    with closing(VectorEnv(config)) as envs:
        envs.reset()
        envs.core.learning.one_group('a server')
        observation_size = spaces.flatdim(envs.single_observation_space)
        return Description(observation_size, envs.action_format, envs.core.step_dt, mujoco.__version__)


def _failure(error: Exception) -> Failed:
    return Failed(f'{type(error).__name__}: {error}', traceback.format_exc())


def _exit_with(server: socket.socket) -> None:
    """Exit this process as soon as the other side of the socket is closed; signals before that are ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to all processes of the server: its own to act on
        signal.signal(number, signal.SIG_IGN)
    poll = select.poll()
    poll.register(server, select.POLLHUP)

    def watch() -> None:
        poll.poll()
        os._exit(0)

    threading.Thread(target=watch, name='end-with-server', daemon=True).start()


def _receive(stream: BufferedRWPair) -> Any:
    (length,) = LENGTH.unpack(_exactly(stream, LENGTH.size))
    return pickle.loads(_exactly(stream, length))


def _exactly(stream: BufferedRWPair, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _send(stream: BufferedRWPair, message: Any) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(LENGTH.pack(len(data)) + data)  # at once, or the server would be woken twice
    stream.flush()
