"""POST requests to policies: the wait for one that starts, and a time limit that holds for replies in drips as well."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from internutopia.evaluation.policy import PolicyError
from internutopia.evaluation.protocols.batches import wait_for

if TYPE_CHECKING:
    import httpx


def post(http: httpx.Client, url: str, body: bytes, address: str, timeout: float) -> tuple[int, bytes]:
    """Return status and content of the reply to a request.

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
    import httpx

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
