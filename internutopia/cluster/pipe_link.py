"""Pipe link: calls of a worker through pipes, from both ends, where it is on the machine of the main process.

A call of a Ray actor takes milliseconds there and back, one through pipes microseconds. So Ray starts, places and ends
workers, and calls those of other machines; one of this machine it calls once, to `serve`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from internutopia.cluster.message_pipe import MessagePipe, Part, from_message, to_message
from internutopia.cluster.worker_process import pickled, this_node, this_place
from internutopia.util import log
from internutopia.util.errors import located
from internutopia.util.memory import collections_put_off

MISTAKES = ValueError, KeyError, OSError
"""Errors of the user; all others are reported with the place in the code."""


class PipeServer:
    """Base class of workers."""

    def node(self) -> str | None:
        """Return the machine, by its id in the cluster."""
        return this_node()

    def answer(self, method: str, arguments: Sequence[Any]) -> tuple[bool, Any]:
        """Call a method: whether all went well, and its result or the exception."""
        try:
            return True, getattr(self, method)(*arguments)
        except Exception as error:
            return False, located(error, this_place(), MISTAKES, pickled)

    def serve(self, process: int, fds: Mapping[str, int]) -> None:
        """Make calls for a process on this machine until it has ended or closes the pipe.

        The first message says that this is ready, and the id of this process (int32). A request is what `answer` takes,
        a reply what it gives. OSError if what the other process has cannot be had here.

        Args:
            process: its id.
            fds: its file descriptors `requests` and `replies`, and of the memory of both, if there is any, as
                `request_memory` and `reply_memory`.
        """
        opened = _open_fds(process, fds)
        memories = (opened['request_memory'], opened['reply_memory']) if 'request_memory' in opened else None
        pipe = MessagePipe(opened['requests'], opened['replies'], memories)
        _yield_to_caller()
        try:
            pipe.send(os.getpid().to_bytes(4, 'little'))
            while (request := pipe.receive()) is not None:
                with collections_put_off():
                    pipe.send(*self._answer_message(request))
        except BrokenPipeError:
            """The reply is not waited for."""
        finally:
            pipe.close()

    def _answer_message(self, request: bytearray) -> list[Part]:
        try:
            return to_message(self.answer(*from_message(request)))
        except Exception as error:  # the request or the result cannot be pickled
            return to_message((False, located(error, this_place(), (), pickled)))


def _yield_to_caller() -> None:
    """Yield the processor to the thread that wakes this one, so that it can first call all workers.

    It gets no less time for that: Linux only makes a thread of `SCHED_BATCH` wait its turn (sched(7)).
    """
    if hasattr(os, 'SCHED_BATCH'):
        with suppress(OSError):  # a sandbox that forbids it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _open_fds(process: int, fds: Mapping[str, int]) -> dict[str, int]:
    """Open file descriptors of another process of this machine in this one. OSError if that fails."""
    modes = {'requests': os.O_RDONLY, 'replies': os.O_WRONLY}
    return {name: os.open(f'/proc/{process}/fd/{fd}', modes.get(name, os.O_RDWR)) for name, fd in fds.items()}


class PipeLink:
    """Caller of a worker through pipes, one call after the other.

    Attributes:
        served: the call of Ray that the worker is in, as long as it serves this.
        pipe: to the worker.
        busy: whether it has a call that it has not answered yet.
        intact: whether every message came and went as a whole: not where Ctrl-C was in the middle of one.
    """

    def __init__(self, actor: Any):
        (requests, own_requests), (own_replies, replies) = os.pipe(), os.pipe()
        fds, memories = {'requests': requests, 'replies': replies}, _memories()
        if memories is not None:
            fds |= {'request_memory': memories[1], 'reply_memory': memories[0]}
        self.pipe = MessagePipe(own_replies, own_requests, memories)
        self.busy = False
        self.intact = True
        self._server = 0  # its process, once it is ready
        self._lent = [requests, replies]
        self.served = actor.serve.remote(os.getpid(), fds)

    def on_served(self) -> None:
        """Close what was lent to the worker, which is ready, or whose pipe has ended."""
        self._close_lent()
        self._server = int.from_bytes(self.pipe.receive() or b'', 'little')

    def send(self, method: str, arguments: tuple[Any, ...]) -> None:
        """Call a method."""
        message = to_message((method, arguments))
        self.intact = False
        with suppress(BrokenPipeError):  # it has ended, which `receive` will say
            self.pipe.send(*message)
        self.busy = self.intact = True

    def receive(self) -> tuple[bool, Any] | None:
        """Wait for the answer: whether all went well, and the result or exception; None if the worker has ended."""
        self.intact = False
        message = self.pipe.receive()
        try:
            return None if message is None else from_message(message)
        except Exception as error:  # of a class that is not here, say
            return False, error

    def on_received(self) -> None:
        """Mark the answer as stored: another call can be made."""
        self.busy, self.intact = False, True

    def kill(self) -> None:
        """End the process of the worker at once. Ray requests it to end first, and waits 5 s."""
        if self._server:
            with suppress(ProcessLookupError):
                os.kill(self._server, signal.SIGKILL)

    def close(self) -> None:
        """Stop serving; may be called twice."""
        self._close_lent()
        self.pipe.close()

    def _close_lent(self) -> None:
        while self._lent:
            os.close(self._lent.pop())


def _memories() -> tuple[int, int] | None:
    """Create memory for replies and requests, as unnamed file descriptors, which the kernel frees with their users.

    None if there is none: long messages go through the pipes then.
    """
    fds: list[int] = []
    try:
        for name in ('replies', 'requests'):
            fds.append(os.memfd_create(f'internutopia-{os.getpid()}-{name}'))
    except (OSError, AttributeError) as error:  # an old kernel, a sandbox, too many files; another system
        log.warning('no shared memory (%s): workers of this machine send long messages through pipes, slower', error)
        for fd in fds:
            os.close(fd)
        return None
    return fds[0], fds[1]
