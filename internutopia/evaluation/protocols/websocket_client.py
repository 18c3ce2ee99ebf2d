"""WebSocket client: openpi's protocol, for its policy servers and others that speak it.

The server sends a map about itself when a client has connected. A request is the observation of one env, a map in
msgpack; the answer is a map with `actions` `(steps, k)`, and the server's time in `server_timing`. Arrays are maps with
`__ndarray__`, `data`, `dtype` and `shape`, keys as bytes. A text instead of bytes is an error of the server, which
hangs up. (openpi-client 0.1.2 on PyPI: `websocket_client_policy`, `msgpack_numpy`.)

Several envs' observations are sent in sequence without waiting for each answer; a server that takes batches is
sent them as one (`batched: true` in the mapping).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from internutopia.evaluation.policy import PolicyError, Request
from internutopia.evaluation.protocols.batches import split, stacked, wait_for
from internutopia.util.stopwatch import Stopwatch

_AHEAD = 4  # observations that are sent before the first one's answer has come
_MOST = 64 << 20  # bytes of an answer
_SHOWN = 2000  # characters of a server's message
_KINDS = 'biuf'


class WebsocketClient:
    """Client of a policy server that speaks openpi's protocol; see `internutopia.evaluation.protocols.connect`.

    Attributes:
        metadata: what the server said about itself.
    """

    def __init__(self, address: str, timeout: float, batched: bool | None = None):
        self.messages = Stopwatch()
        self._address, self._timeout, self._batched = address, timeout, bool(batched)
        self._connection: ClientConnection | None = None
        self.metadata: Any = None
        self._connected()

    def infer(self, requests: Sequence[Request]) -> list[Any]:
        """Query the policy; see `Client`."""
        contents = [request.content for request in requests]
        if not self._batched:
            return self._asked(contents)
        (answer,) = self._asked([stacked(contents)])
        if isinstance(answer, PolicyError):
            raise answer
        return list(split(answer, len(contents)))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _asked(self, contents: Sequence[Any]) -> list[Any]:
        """Send messages and return their answers; of those that a broken connection took, errors."""
        if not contents:
            return []
        connection = self._connected()
        answers: list[Any] = []
        sent = 0
        try:
            while len(answers) < len(contents):
                while sent < min(len(contents), len(answers) + _AHEAD):
                    with self.messages:
                        message = pack(contents[sent])
                    with contextlib.suppress(ConnectionClosed):  # what came before the end is still to be received
                        connection.send(message)
                    sent += 1
                data = connection.recv(timeout=self._timeout)
                if isinstance(data, str):  # the server hangs up after it
                    self.close()
                    return [*answers, PolicyError(data[-_SHOWN:]), *self._asked(contents[len(answers) + 1 :])]
                with self.messages:
                    answers.append(_unpacked(data))
        except TimeoutError:
            lost = PolicyError(f'no answer within {self._timeout:g} s')
        except (ConnectionClosed, OSError) as error:
            lost = PolicyError(f'the connection broke: {error}')
        else:
            return answers
        self.close()  # a late answer would be taken for that to another question
        self._connected()
        return [*answers, *[lost] * (len(contents) - len(answers))]

    def _connected(self) -> ClientConnection:
        """Return the connection, a new one if there is none. PolicyGoneError."""
        if self._connection is None:
            errors = OSError, InvalidHandshake, ConnectionClosed, PolicyError
            self._connection = wait_for(self._connect, self._address, self._timeout, errors)
        return self._connection

    def _connect(self) -> ClientConnection:
        connection = connect(self._address, compression=None, max_size=_MOST, open_timeout=self._timeout, proxy=None)
        try:
            data = connection.recv(timeout=self._timeout)
            self.metadata = _unpacked(data.encode() if isinstance(data, str) else data)
            if isinstance(self.metadata, PolicyError):
                raise self.metadata
        except BaseException:
            connection.close()
            raise
        return connection


def pack(message: Any) -> bytes:
    """Return a message with arrays as bytes."""
    data = msgpack.packb(message, default=_packable)
    assert data is not None
    return data


def _packable(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        return {b'__ndarray__': True, b'data': value.tobytes(), b'dtype': value.dtype.str, b'shape': value.shape}
    raise TypeError(f'{type(value).__name__} cannot be sent')


def _unpacked(data: bytes) -> Any:
    """Return the message in bytes, or the error that says why there is none."""
    try:
        return msgpack.unpackb(data, object_hook=_array)
    except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
        return PolicyError(f'the reply cannot be read: {str(error) or type(error).__name__}')


def _array(items: dict[Any, Any]) -> Any:
    """Return the array or number that a map stands for; any other map as it is."""
    if b'__ndarray__' not in items and b'__npgeneric__' not in items:
        return items
    dtype = np.dtype(items[b'dtype'])
    if dtype.kind not in _KINDS:
        raise ValueError(f'an array of dtype {dtype}')
    if b'__npgeneric__' in items:
        return dtype.type(items[b'data'])
    return np.frombuffer(items[b'data'], dtype).reshape(items[b'shape'])
