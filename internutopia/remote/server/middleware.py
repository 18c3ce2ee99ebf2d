"""Middleware around every request: authentication and limits, then a line in the log and metrics.

A body that is unread when the reply is sent is not waited for: the connection ends with the reply.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from internutopia.remote.protocol import PREFIX, REQUEST_HEADER
from internutopia.remote.server.http_bodies import Context, error_response
from internutopia.remote.server.limits import InFlight, Metrics, RateLimit, origin
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.service_error import ServiceError, shutting_down
from internutopia.remote.server.users import Users
from internutopia.util import log

PROBES = frozenset(('/health', '/livez', '/readyz'))
_PUBLIC_PATHS = re.compile(rf'/|/page/[^/]*|{PREFIX}/version')
_LOCAL_HOST = re.compile(r'(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?', re.IGNORECASE)
_METHODS = frozenset(('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'))
_REQUEST_ID = re.compile(rb'[\w.:-]{1,100}')
_REQUEST_FIELD = REQUEST_HEADER.lower().encode()
_LARGE = 64 << 10  # bytes of a reply that may not be taken at once


class RequestMiddleware:
    """ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, users: Users, settings: Settings, in_flight: InFlight, metrics: Metrics):
        self._app = app
        self._users = users
        self._metrics = metrics
        self._in_flight = in_flight
        self._rate = RateLimit(settings.requests_per_second, settings.burst, 'of a user')
        self._address_rate = RateLimit(
            settings.address_requests_per_second, settings.address_burst, 'without a token from your address'
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope['type'] != 'http':
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        fields = dict(scope['headers'])
        given = fields.get(_REQUEST_FIELD)  # the sender's id, if it is fit for the log
        request_id = given.decode() if given and _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        trace = _RequestTrace(Context.open(scope, request_id), fields, receive, send, self._in_flight)
        try:
            self._check(request)
            if trace.context.user is None:
                await self._app(scope, receive, trace.send)
            else:
                with self._in_flight.admit(trace, trace.context.user.name):
                    await self._app(scope, trace.receive, trace.send)
        except ServiceError as error:
            await error_response(request, error)(scope, receive, trace.send)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:  # only when the server stops, and has waited for it
            if not trace.status:
                await error_response(request, shutting_down())(scope, receive, trace.send)
        except Exception:
            log.exception('request=%s failed', trace.context.request_id)
            if not trace.status:
                error = ServiceError(500, 'internal', 'internal server error; see the log of the server')
                await error_response(request, error)(scope, receive, trace.send)
        finally:
            self._record(scope, trace)

    def _check(self, request: Request) -> None:
        """Authenticate a request where needed. ServiceError if it is refused."""
        path = request.scope['path']
        if self._users.open and not _LOCAL_HOST.fullmatch(request.headers.get('host', '')):
            # a page of another site whose name was made to mean this machine
            self._count_address(request)
            raise ServiceError(403, 'wrong_host', 'this server only accepts requests to localhost')
        if path in PROBES:  # never refused: a server whose probe fails is started again
            return
        if _PUBLIC_PATHS.fullmatch(path):
            self._count_address(request)
            return
        user = self._users.look_up(request.headers.get('authorization'))
        if user is None:
            self._count_address(request)
            given = 'authorization' in request.headers
            message = 'the token is not valid for this server' if given else 'a token is needed'
            raise ServiceError(
                401,
                'unauthorized',
                f'{message}: send the header "Authorization: Bearer TOKEN" with a token that '
                '`internutopia token add` made for this server',
                {'WWW-Authenticate': 'Bearer'},
            )
        Context.of(request).user = user
        self._rate.take(user.name)

    def _count_address(self, request: Request) -> None:
        if request.client is not None:
            self._address_rate.take(origin(request.client.host))

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
    """A request in progress, with the facts to log."""

    def __init__(self, context: Context, fields: dict[bytes, bytes], receive: Receive, send: Send, in_flight: InFlight):
        self.context = context
        self.start = time.perf_counter()
        self.status = self.received = self.sent = 0
        self._receive = receive
        self._send = send
        self._in_flight = in_flight
        self._body_to_come = b'transfer-encoding' in fields or fields.get(b'content-length', b'0') != b'0'

    async def receive(self) -> Message:
        """Receive the next part of the request; ServiceError if the server is too busy once all has arrived."""
        self._in_flight.pause(self)
        message = await self._receive()
        self.received += len(message.get('body', b''))
        if not message.get('more_body', False):
            self._body_to_come = False
            self._in_flight.go_on(self)
        return message

    async def send(self, message: Message) -> None:
        """Send the next part of the reply; if it is large, wait until the client has read most of it."""
        self._in_flight.pause(self)
        if message['type'] == 'http.response.start':
            self.status = message['status']
            headers: list[tuple[bytes, bytes]] = message.setdefault('headers', [])
            headers.append((_REQUEST_FIELD, self.context.request_id.encode()))
            if self._body_to_come:
                headers.append((b'connection', b'close'))
        else:
            size = len(message.get('body', b''))
            self.sent += size
            if size > _LARGE:
                await self._send({**message, 'more_body': True})
                message = {'type': 'http.response.body', 'more_body': message.get('more_body', False)}
        await self._send(message)
