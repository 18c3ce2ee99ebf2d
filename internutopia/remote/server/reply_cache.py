"""Reply cache, so that a repeated request is not executed again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from internutopia.remote.server.limits import Line
from internutopia.remote.server.service_error import ServiceError

_KEPT_BYTES = 64 << 20


@dataclass(frozen=True)
class Body:
    """Body of a reply."""

    data: bytes
    media_type: str


@dataclass(frozen=True)
class _Entry:
    fingerprint: bytes
    outcome: asyncio.Future[Body]


class ReplyCache:
    """Cache of the last replies, by idempotency key.

    Args:
        count: replies that are kept, at most; and 64 MiB of them, besides the last one.
        waiting: repeated requests that wait for the first one, at most.
    """

    def __init__(self, count: int, waiting: int):
        self._count = count
        self._waiting = Line(waiting, 'repeated requests are waiting')
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    async def once(self, key: str | None, fingerprint: bytes, act: Callable[[], Awaitable[Body]]) -> Body:
        """Run `act` unless this key was used before: then return that reply, waiting for it if need be.

        Errors are not kept: after one the same key runs `act` again.

        Args:
            key: the caller's; with None `act` always runs.
            fingerprint: of the request. ServiceError if the key came with another one.
            act: executes the request.

        Raises:
            ServiceError: also if too many wait already.
        """
        if key is None:
            return await act()
        entry = self._entries.get(key)
        if entry is not None:
            if entry.fingerprint != fingerprint:
                message = 'the Idempotency-Key was used for another request: make a new one'
                raise ServiceError(422, 'key_reused', message)
            if entry.outcome.done():
                return entry.outcome.result()
            with self._waiting:
                return await asyncio.shield(entry.outcome)
        entry = self._entries[key] = _Entry(fingerprint, asyncio.get_running_loop().create_future())
        try:
            reply = await act()
        except BaseException as error:
            del self._entries[key]
            if isinstance(error, Exception):
                entry.outcome.set_exception(error)
                entry.outcome.exception()  # mark it as retrieved: there may be no waiter
            else:
                entry.outcome.cancel()
            raise
        entry.outcome.set_result(reply)
        self._trim()
        return reply

    def _trim(self) -> None:
        """Drop the oldest finished replies."""
        done = [(key, entry.outcome.result()) for key, entry in self._entries.items() if entry.outcome.done()]
        size = sum(len(reply.data) for _, reply in done)
        for index, (key, reply) in enumerate(done[:-1]):
            if len(done) - index <= self._count and size <= _KEPT_BYTES:
                break
            del self._entries[key]
            size -= len(reply.data)
