"""Client connection: uvicorn's, which ends if the client is too slow or sends too much.

A connection above the limit may only send a probe: it ends unless it requests one at once.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from itertools import chain
from typing import Any

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from internutopia.remote.server.limits import Metrics, origin
from internutopia.remote.server.middleware import PROBES
from internutopia.remote.server.server_settings import Settings

_MAX_HEADER = 64 << 10  # bytes
_TOO_LARGE = 'The header is too large.'
_BETWEEN = 4  # bytes of a field in addition to its name and value
_PROBE_TIMEOUT = 1.0  # s that a connection which is one too many has to request a probe


class Connections:
    """Open connections of a server, limited in all and for each address.

    When there are too many, the one that has waited longest for the header of a request is ended: idle connections
    do not block new ones. Those above the limit of their address, or opened while all others were at work,
    are ended first, and only their probes are answered.
    """

    def __init__(self, settings: Settings, metrics: Metrics):
        self.settings = settings
        self.waiting: dict[Connection, None] = {}
        """Those without a request at work, the one that waits longest first."""
        self._surplus: dict[Connection, None] = {}
        self._metrics = metrics
        self._origins: dict[Connection, str | None] = {}
        self._of_origins: Counter[str] = Counter()

    def add(self, connection: Connection) -> None:
        """Count a new connection; if there are too many, end it or another one."""
        counted = self._origins[connection] = self._counted_as(connection)
        if counted is not None:
            self._of_origins[counted] += 1
            if self._of_origins[counted] > self.settings.address_connections:
                self._surplus[connection] = None
        if len(self._origins) > self.settings.connections:
            others = (each for each in chain(self._surplus, self.waiting) if each is not connection)
            if (one := next(others, None)) is not None:
                self.end(one, 'connections')
            if len(self._origins) - len(self._surplus) > self.settings.connections:  # all others are at work
                self._surplus[connection] = None
        if connection in self._surplus:
            connection.loop.call_later(_PROBE_TIMEOUT, self._end_surplus, connection)

    def admits(self, connection: Connection, path: str) -> bool:
        """Return True if a connection may request a path; otherwise end it."""
        if connection not in self._surplus or path in PROBES:
            return True
        self.end(connection, 'connections')
        return False

    def remove(self, connection: Connection) -> None:
        """Remove a connection that is over; idempotent."""
        self.waiting.pop(connection, None)
        self._surplus.pop(connection, None)
        counted = self._origins.pop(connection, None)
        if counted is not None:
            self._of_origins[counted] -= 1
            if not self._of_origins[counted]:
                del self._of_origins[counted]

    def end(self, connection: Connection, reason: str) -> None:
        """End a connection at once; unsent data is discarded."""
        if not connection.transport.is_closing():  # by itself, only that something is still to be sent
            self._metrics.rejected.labels(reason).inc()
        self.remove(connection)
        connection.transport.abort()

    def _end_surplus(self, connection: Connection) -> None:
        """End a connection that was one too many, unless it is answered now."""
        if connection in self._surplus and connection in self.waiting:
            self.end(connection, 'connections')

    def _counted_as(self, connection: Connection) -> str | None:
        """Return the address of a connection; None for one of a proxy, or of a client that has disconnected."""
        if connection.client is None:
            return None
        host = connection.client[0]
        proxies = self.settings.trusted_proxies
        is_proxy = proxies and any(ipaddress.ip_address(host) in network for network in proxies)
        return None if is_proxy else origin(host)


class Connection(HttpToolsProtocol):
    """HTTP connection, driven by asyncio and the HTTP parser."""

    def __init__(self, connections: Connections, **arguments: Any):
        super().__init__(**arguments)
        self._connections = connections
        self._unparsed = 0  # bytes that came since the parser came to the end of something
        self._header_size = 0  # bytes, as far as they were parsed
        self._header_timer: asyncio.TimerHandle | None = None
        self._reply_timer: asyncio.TimerHandle | None = None
        self._reply_left = 0  # bytes, when the timer was set

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_header()
        self._connections.add(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._header_came()
        self.resume_writing()
        self._connections.remove(self)
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > _MAX_HEADER and not self.transport.is_closing():
            self.send_400_response(_TOO_LARGE)

    @override
    def on_message_begin(self) -> None:
        self._header_size = 0
        super().on_message_begin()

    @override
    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _BETWEEN)
        super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        self._unparsed = 0
        self._header_came()
        path = self.url.partition(b'?')[0].decode('latin-1')
        if not self.transport.is_closing() and self._connections.admits(self, path):
            super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        if not self.transport.is_closing():
            super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        self._unparsed = 0
        if not self.transport.is_closing():
            super().on_message_complete()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # else the client has sent another request already
            self._await_header()

    @override
    def pause_writing(self) -> None:
        """Wait for the client to read: the send buffer is full."""
        super().pause_writing()
        self._await_reader()

    @override
    def resume_writing(self) -> None:
        """Resume sending: the client has read."""
        super().resume_writing()
        if self._reply_timer is not None:
            self._reply_timer.cancel()

    def _count(self, size: int) -> None:
        """Count bytes of a header, which may have come as a whole, or of trailers."""
        self._header_size += size
        if self._header_size > _MAX_HEADER and not self.transport.is_closing():
            self.send_400_response(_TOO_LARGE)

    def _await_header(self) -> None:
        self._connections.waiting[self] = None
        timeout = self._connections.settings.header_timeout
        self._header_timer = self.loop.call_later(timeout, self._connections.end, self, 'slow')

    def _header_came(self) -> None:
        self._connections.waiting.pop(self, None)
        if self._header_timer is not None:
            self._header_timer.cancel()

    def _await_reader(self) -> None:
        self._reply_left = self.transport.get_write_buffer_size()
        self._reply_timer = self.loop.call_later(self._connections.settings.reply_timeout, self._check_reader)

    def _check_reader(self) -> None:
        if self.transport.get_write_buffer_size() < self._reply_left:
            self._await_reader()
        else:
            self._connections.end(self, 'slow')
