"""HTTP client: the protocol of this package, for policy servers that are written for it.

A request is a POST of msgpack, in which arrays are extension type 1 (`internutopia.util.encoding`):

- `observations`: what the mapping names, arrays with a row for each env, texts as lists.
- `env_ids` `(n,)`: ids of the envs.
- `first` `(n,)`: True where it is the first question of an episode, for policies that have a state.

The reply is a map of the arrays that the mapping names, `(n, steps, k)`; or any status but 200, and a text.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np

from internutopia.evaluation.policy import PolicyError, Request
from internutopia.evaluation.protocols.batches import asked, split, stacked, wait_for
from internutopia.util.encoding import MSGPACK, MalformedError, decode, encode

_SHOWN = 2000  # characters of a server's message


class HttpClient:
    """Client of a policy server that speaks HTTP; see `internutopia.evaluation.protocols.connect`."""

    def __init__(self, address: str, timeout: float, batched: bool | None = None):
        self._address, self._timeout, self._batched = address, timeout, batched is not False
        self._http = httpx.Client(timeout=timeout, headers={'Content-Type': MSGPACK}, trust_env=False)
        url = httpx.URL(address)
        place = url.host, url.port or {'http': 80, 'https': 443}[url.scheme]
        wait_for(lambda: socket.create_connection(place, timeout).close(), address, timeout, (OSError,))

    def infer(self, requests: Sequence[Request]) -> list[Any]:
        """Ask the policy; see `Client`."""
        return asked(self._asked, requests, self._batched)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _asked(self, requests: Sequence[Request]) -> list[Any]:
        message = {
            'observations': stacked([request.content for request in requests]),
            'env_ids': np.array([request.env_id for request in requests]),
            'first': np.array([request.first for request in requests]),
        }
        body = encode(message, MSGPACK)

        def post() -> httpx.Response:
            return self._http.post(self._address, content=body)

        try:
            reply = wait_for(post, self._address, self._timeout, (httpx.ConnectError, httpx.ConnectTimeout))
        except httpx.TimeoutException:
            raise PolicyError(f'no answer within {self._timeout:g} s') from None
        except httpx.TransportError as error:
            raise PolicyError(f'the connection broke: {error}') from None
        if reply.status_code != httpx.codes.OK:
            raise PolicyError(f'status {reply.status_code}: {reply.text[:_SHOWN]}')
        try:
            return list(split(decode(reply.content, MSGPACK), len(requests)))
        except MalformedError as error:
            raise PolicyError(f'the answer cannot be read: {error}') from None
