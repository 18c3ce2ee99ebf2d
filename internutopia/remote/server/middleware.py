"""Middleware around every request: who sent it, is there room; then a line in the log, and metrics."""

from __future__ import annotations

import re
import secrets
import time

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from internutopia.core.util import log
from internutopia.remote.protocol import PREFIX, REQUEST_HEADER
from internutopia.remote.server.bodies import error_response
from internutopia.remote.server.context import Context
from internutopia.remote.server.errors import ServiceError, retry_later
from internutopia.remote.server.limits import RateLimit
from internutopia.remote.server.metrics import Metrics
from internutopia.remote.server.settings import Settings
from internutopia.remote.server.users import Users

_PUBLIC_PATHS = re.compile(rf'/|/health|/page/[^/]*|{PREFIX}/version')
_LOCAL_HOST = re.compile(r'(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?', re.IGNORECASE)
_METHODS = frozenset(('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'))


class RequestMiddleware:
    """ASGI middleware around everything.

    Args:
        app: what is behind it.
        users: who may come in.
        settings: limits.
        metrics: what is counted.
    """

    def __init__(self, app: ASGIApp, users: Users, settings: Settings, metrics: Metrics):
        self._app = app
        self._users = users
        self._metrics = metrics
        self._rate = RateLimit(settings.requests_per_second, settings.burst)
        self._most = settings.in_flight
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope['type'] != 'http':
            await self._app(scope, receive, send)
            return
        trace = _RequestTrace(Context.open(scope, secrets.token_hex(8)), receive, send)
        request = Request(scope, trace.receive)
        self._in_flight += 1
        try:
            try:
                self._check(request)
                await self._app(scope, trace.receive, trace.send)
            except ServiceError as error:
                await error_response(request, error)(scope, receive, trace.send)
            except Exception:
                log.exception('request=%s failed', trace.context.request_id)
                if not trace.status:
                    error = ServiceError(500, 'internal', 'the server made a mistake; its log knows more')
                    await error_response(request, error)(scope, receive, trace.send)
        finally:
            self._in_flight -= 1
            self._record(scope, trace)

    def _check(self, request: Request) -> None:
        """ServiceError for a request that may not come in."""
        if self._users.open and not _LOCAL_HOST.fullmatch(request.headers.get('host', '')):
            # a page of another site whose name was made to mean this machine
            raise ServiceError(403, 'wrong_host', 'this server is for this machine only: call it localhost')
        if _PUBLIC_PATHS.fullmatch(request.scope['path']):
            return
        user = self._users.look_up(request.headers.get('authorization'))
        if user is None:
            raise ServiceError(
                401,
                'unauthorized',
                'a token is needed: send the header "Authorization: Bearer TOKEN" with a token of this server',
                {'WWW-Authenticate': 'Bearer'},
            )
        Context.of(request).user = user
        self._rate.take(user.name)
        if self._in_flight > self._most:
            raise retry_later(503, 'overloaded', f'{self._most} requests are at work already')

    def _record(self, scope: Scope, trace: _RequestTrace) -> None:
        seconds = time.perf_counter() - trace.start
        route = getattr(scope.get('route'), 'path', None) or 'none'
        method = scope['method'] if scope['method'] in _METHODS else 'other'
        status = trace.status or 499  # the client has gone
        self._metrics.requests.labels(route, method, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        user, fault = trace.context.user, trace.context.fault
        if fault is not None:
            self._metrics.rejected.labels(fault).inc()
        log.info(
            'request=%s user=%s method=%s route=%s status=%d ms=%.2f received=%d sent=%d',
            trace.context.request_id,
            '-' if user is None else user.name,
            method,
            route,
            status,
            1e3 * seconds,
            trace.received,
            trace.sent,
        )


class _RequestTrace:
    """A request on its way through, and what is logged of it."""

    def __init__(self, context: Context, receive: Receive, send: Send):
        self.context = context
        self.start = time.perf_counter()
        self.status = self.received = self.sent = 0
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        message = await self._receive()
        self.received += len(message.get('body', b''))
        return message

    async def send(self, message: Message) -> None:
        if message['type'] == 'http.response.start':
            self.status = message['status']
            headers: list[tuple[bytes, bytes]] = message.setdefault('headers', [])
            headers.append((REQUEST_HEADER.lower().encode(), self.context.request_id.encode()))
        else:
            self.sent += len(message.get('body', b''))
        await self._send(message)
