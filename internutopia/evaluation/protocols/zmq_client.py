"""ZeroMQ client: GR00T's inference service, in the form that Isaac-GR00T has since N1.6.

A request is `{'endpoint': 'get_action', 'data': {'observation': ..., 'options': None}}` in msgpack, the reply
`[actions, info]`, or `{'error': text}`. Arrays are maps with `__ndarray_class__` and `as_npy`, a file of `numpy.save`.
Observations are nested: `video` (envs, times, height, width, 3), `state` (envs, times, k), `language` (envs, times) of
texts; actions are `(envs, steps, k)`. Here the name in the mapping is `video.front` for what is `front` in `video`, and
there is one time. (Isaac-GR00T on GitHub, Apache-2.0: `gr00t/policy/server_client.py`, `getting_started/policy.md`. The
package is on no index: this was tested against messages that follow these descriptions.)
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
import numpy as np
import zmq

from internutopia.evaluation.policy import PolicyError, PolicyGoneError, Request
from internutopia.evaluation.protocols.batches import asked, split, stacked
from internutopia.util.stopwatch import Stopwatch

_ARRAY = '__ndarray_class__'
_MODALITIES = 'video', 'state', 'language'


class ZmqClient:
    """Client of GR00T's inference service; see `internutopia.evaluation.protocols.connect`."""

    def __init__(self, address: str, timeout: float, batched: bool | None = None):
        self.messages = Stopwatch()
        self._address, self._timeout, self._batched = address, timeout, batched is not False
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._connected()

    def infer(self, requests: Sequence[Request]) -> list[Any]:
        """Query the policy; see `Client`."""
        return asked(self._asked, requests, self._batched)

    def close(self) -> None:
        """Close the connection."""
        self._hang_up()
        self._context.term()

    def _asked(self, requests: Sequence[Request]) -> list[Any]:
        observation = nested(stacked([request.content for request in requests]))
        reply = self._called({'endpoint': 'get_action', 'data': {'observation': observation, 'options': None}})
        if not (isinstance(reply, list) and reply and isinstance(reply[0], Mapping)):
            raise PolicyError(f'expected [actions, info], got {type(reply).__name__}')
        return list(split(reply[0], len(requests)))

    def _called(self, request: Mapping[str, Any]) -> Any:
        """Call the service. PolicyError for its errors, and if it does not answer in time."""
        try:
            data = self._exchanged(self._connected(), request)
        except PolicyError:
            self._connected()  # a service that is gone is no fault of an episode
            raise
        try:
            with self.messages:
                reply = msgpack.unpackb(data, object_hook=_array)
        except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
            raise PolicyError(f'the reply cannot be read: {str(error) or type(error).__name__}') from None
        if isinstance(reply, Mapping) and 'error' in reply:
            raise PolicyError(str(reply['error']))
        return reply

    def _connected(self) -> zmq.Socket[bytes]:
        """Return the socket, a new one if there is none, behind which a service answers. PolicyGoneError."""
        if self._socket is None:
            self._socket = self._context.socket(zmq.REQ)
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.RCVTIMEO, int(1e3 * self._timeout))
            self._socket.connect(self._address.replace('zmq://', 'tcp://', 1))
            try:
                self._exchanged(self._socket, {'endpoint': 'ping'})
            except PolicyError as error:
                raise PolicyGoneError(
                    f'no policy responds at {self._address} within {self._timeout:g} s: {error}'
                ) from None
        return self._socket

    def _exchanged(self, socket: zmq.Socket[bytes], message: Mapping[str, Any]) -> bytes:
        try:
            with self.messages:
                data = msgpack.packb(message, default=_packable)
            assert data is not None
            socket.send(data)
            return socket.recv()
        except zmq.Again:
            self._hang_up()  # a late answer would be taken for that to another question
            raise PolicyError(f'no answer within {self._timeout:g} s') from None
        except zmq.ZMQError as error:
            self._hang_up()
            raise PolicyError(f'the connection broke: {error}') from None

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def nested(observation: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return an observation of envs as GR00T has it, with an axis of one time. ValueError for names that it lacks."""
    result: dict[str, dict[str, Any]] = {}
    for name, values in observation.items():
        group, dot, key = name.partition('.')
        if not (dot and group in _MODALITIES):
            raise ValueError(f'{name!r}: GR00T has names such as video.front, state.arm and language.task')
        times = [[text] for text in values] if isinstance(values, list) else values[:, None]
        result.setdefault(group, {})[key] = times
    return result


def _packable(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        raise TypeError(f'{type(value).__name__} cannot be sent')
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return {_ARRAY: True, 'as_npy': file.getvalue()}


def _array(items: dict[Any, Any]) -> Any:
    return np.load(io.BytesIO(items['as_npy']), allow_pickle=False) if _ARRAY in items else items
