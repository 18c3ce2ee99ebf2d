"""HTTP client: the protocol of this package, for policy servers that are written for it.

A request is a POST of msgpack, in which arrays are extension type 1 (`internutopia.util.encoding`):

- `observations`: what the mapping names, arrays with a row for each env, texts as lists.
- `env_ids` `(n,)`: ids of the envs.
- `first` `(n,)`: True where it is the first question of an episode, for policies that have a state.

The reply is a map of the arrays that the mapping names, `(n, steps, k)`; or any status but 200, and a text.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np

from internutopia.evaluation.policy import PolicyError, Request
from internutopia.evaluation.protocols.batches import asked, split, stacked, wait_for
from internutopia.util.encoding import MSGPACK, MalformedError, decode, encode
from internutopia.util.stopwatch import Stopwatch

_SHOWN = 2000  # characters of a server's message
_MOMENT = 0.2  # s, that a connection has to hold
_GLIMPSE = 40  # bytes of an answer that cannot be read


class HttpClient:
    """Client of a policy server that speaks HTTP; see `internutopia.evaluation.protocols.connect`."""

    def __init__(self, address: str, timeout: float, batched: bool | None = None):
        self.messages = Stopwatch()
        self._address, self._timeout, self._batched = address, timeout, batched is not False
        self._http = httpx.Client(timeout=timeout, headers={'Content-Type': MSGPACK}, trust_env=False)
        self._reached()

    def infer(self, requests: Sequence[Request]) -> list[Any]:
        """Query the policy; see `Client`."""
        return asked(self._asked, requests, self._batched)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _asked(self, requests: Sequence[Request]) -> list[Any]:
        with self.messages:
            message = {
                'observations': stacked([request.content for request in requests]),
                'env_ids': np.array([request.env_id for request in requests]),
                'first': np.array([request.first for request in requests]),
            }
            body = encode(message, MSGPACK)
        try:
            status, data = post(self._http, self._address, body, self._address, self._timeout)
        except httpx.TransportError as error:
            self._reached()
            raise PolicyError(f'the connection broke: {error}') from None
        if status != httpx.codes.OK:
            text = data[:_SHOWN].decode(errors='replace')
            raise PolicyError(f'status {status} {httpx.codes.get_reason_phrase(status)}: {text}')
        try:
            with self.messages:
                return list(split(decode(data, MSGPACK), len(requests)))
        except MalformedError as error:
            raise PolicyError(f'the reply cannot be read: {error}; it begins with {data[:_GLIMPSE]!r}') from None

    def _reached(self) -> None:
        """Wait until something listens at the address. PolicyGoneError."""
        url = httpx.URL(self._address)
        place = url.host, url.port or {'http': 80, 'https': 443}[url.scheme]
        wait_for(lambda: _connect(place, self._timeout), self._address, self._timeout, (OSError,))


def post(http: httpx.Client, url: str, body: bytes, address: str, timeout: float) -> tuple[int, bytes]:
    """Return status and content of the reply to a POST, with a time limit that holds for replies in drips as well.

    Args:
        http: connection to the policy.
        url: relative to that of the connection, if it has one.
        body: of the request.
        address: of the policy, for messages.
        timeout: time that the reply may take [s].

    Raises:
        PolicyError: it takes too long.
        PolicyGoneError: no policy responds at the address.
        httpx.TransportError: the connection broke.
    """

    def reply() -> tuple[int, bytes]:
        end = time.monotonic() + timeout
        with http.stream('POST', url, content=body) as reply:
            parts = []
            for part in reply.iter_bytes():
                parts.append(part)
                if time.monotonic() > end:
                    raise httpx.ReadTimeout('the reply takes too long')
            return reply.status_code, b''.join(parts)

    try:
        return wait_for(reply, address, timeout, (httpx.ConnectError, httpx.ConnectTimeout))
    except httpx.TimeoutException:
        raise PolicyError(f'no answer within {timeout:g} s') from None


def _connect(place: tuple[str, int], timeout: float) -> None:
    """Connect for a moment: a process that ends takes connections until all its sockets are closed. OSError."""
    with socket.create_connection(place, timeout) as connection:
        connection.settimeout(_MOMENT)
        try:
            closed = not connection.recv(1)
        except TimeoutError:
            return
        if closed:
            raise ConnectionResetError('the connection was closed at once')
