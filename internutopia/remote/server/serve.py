"""Server process: listens and serves until it is stopped."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from typing_extensions import override

import internutopia
from internutopia.config import Config
from internutopia.remote.protocol import ErrorCode
from internutopia.remote.server import page, routes
from internutopia.remote.server.connection import Connection, Connections
from internutopia.remote.server.http_bodies import error_response
from internutopia.remote.server.limits import InFlight, Metrics
from internutopia.remote.server.middleware import RequestMiddleware
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.service_error import ServiceError, invalid
from internutopia.remote.server.session_manager import SessionManager
from internutopia.remote.server.users import Users
from internutopia.util.interrupts import interrupts

_BACKLOG = 2048
_TICK = 0.05  # s between two checks for calls at work
_CLOSING = 3  # s that connections have to end after the last call


def serve(
    config: Config,
    host: str,
    port: int,
    tokens: Path | None,
    settings: Settings,
    certificate: Certificate | None = None,
) -> None:
    """Serve a config; prints the address when all is ready, and returns after SIGINT or SIGTERM.

    Args:
        config: what every session runs.
        host: address to listen at.
        port: port to listen at; 0 takes a free one.
        tokens: tokens file; None serves only this machine, without tokens.
        settings: limits.
        certificate: of the server, for TLS; None serves without.

    Raises:
        ValueError: the config does not work, the tokens file is wrong, or there is none and `host` is not of this
            machine only.
        OSError: the tokens file cannot be read, or the address not be listened at.
    """
    users = Users(tokens)
    with listen(host, port, users.open) as sock:
        asyncio.run(_serve(config, sock, users, settings, certificate))


class Certificate:
    """A certificate and its private key, in PEM files.

    Args:
        file: the certificate, and those between it and the root.
        key: the private key, not encrypted; None if it is in the same file.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not what it should be, or key and certificate do not belong together.
    """

    def __init__(self, file: Path, key: Path | None = None):
        self.file = file
        self.key = key
        for path in (file, key or file):
            path.open('rb').close()  # the error of the next line names no file
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file, key, password='')
        except ssl.SSLError as error:
            raise ValueError(f'{file} and {key or file}: no certificate in PEM with its key ({error.reason})') from None


class Server(uvicorn.Server):
    """Server of a config that works: `await server.serve([listen(...)])` returns once it is stopped.

    Everything at work is finished then, and all workers are gone. `should_exit = True` stops it, as do SIGINT
    and SIGTERM in the main thread.
    """

    def __init__(
        self, session_manager: SessionManager, users: Users, metrics: Metrics, certificate: Certificate | None = None
    ):
        settings = session_manager.settings
        protocol: Any = functools.partial(Connection, Connections(settings, metrics))
        super().__init__(
            uvicorn.Config(
                create_app(session_manager, users, metrics),
                http=protocol,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(settings.trusted_proxies),  # from these proxies only
                forwarded_allow_ips=[str(network) for network in settings.trusted_proxies],
                ws='none',
                timeout_graceful_shutdown=_CLOSING,
                ssl_certfile=certificate and certificate.file,
                ssl_keyfile=certificate and certificate.key,
            )
        )
        self._session_manager = session_manager

    @classmethod
    async def of(
        cls, config: Config, users: Users, settings: Settings, certificate: Certificate | None = None
    ) -> Server:
        """Create the server of a config after trying the config. ValueError if it does not work."""
        metrics = Metrics()
        session_manager = SessionManager(config, settings, metrics)
        try:
            await session_manager.probe()
        except BaseException:
            await session_manager.close()
            raise
        return cls(session_manager, users, metrics, certificate)

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal: waiting calls are refused from then on."""
        self._session_manager.shut_down()
        super().handle_exit(sig, frame)

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the calls at work and refuse others; then close all connections."""
        self._session_manager.shut_down()
        end = time.monotonic() + self._session_manager.settings.drain_timeout
        while self._session_manager.busy and not self.force_exit and time.monotonic() < end:
            await asyncio.sleep(_TICK)
        await super().shutdown(sockets)


def listen(host: str, port: int, local_only: bool) -> socket.socket:
    """Return a listening socket. ValueError with `local_only` if other machines could reach it."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror as error:
        raise OSError(error.errno, error.strerror, host) from None
    if local_only and not ipaddress.ip_address(address[0]).is_loopback:
        raise ValueError(
            f'--host {host}: others could reach this address, and without tokens any client may use the server; give '
            'users tokens (internutopia token add NAME --file tokens.json) and the server --tokens tokens.json'
        )
    # with the protocol, for which asyncio lets no small packet wait for another
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, error.strerror, f'{host}:{port}') from None
    return sock


async def _serve(
    config: Config, sock: socket.socket, users: Users, settings: Settings, certificate: Certificate | None
) -> None:
    server = await Server.of(config, users, settings, certificate)
    host, port = sock.getsockname()[:2]
    scheme = 'http' if certificate is None else 'https'
    print(f'serving on {scheme}://{f"[{host}]" if ":" in host else host}:{port}', flush=True)
    with interrupts() as interruption, interruption.deferred():  # uvicorn handles them, and sends them when all is done
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # except for this one
            signal.signal(signal.SIGHUP, server.handle_exit)
        await server.serve([sock])


_CODES: dict[int, ErrorCode] = {404: 'not_found', 405: 'method_not_allowed'}


def create_app(session_manager: SessionManager, users: Users, metrics: Metrics) -> FastAPI:
    """Create the ASGI application of a `session_manager` that was probed; its lifespan ends the sessions."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with session_manager.watching():
            yield

    app = FastAPI(
        title='InternUtopia',
        version=internutopia.__version__,
        description='Robot simulation as a service.',
        lifespan=lifespan,
        docs_url=None,  # these pages fetch scripts from elsewhere
        redoc_url=None,
    )
    settings = session_manager.settings
    in_flight = InFlight(settings.in_flight, settings.user_in_flight)
    app.state.session_manager = session_manager
    app.state.in_flight = in_flight
    app.state.metrics = metrics
    # for the document only: the middleware checks the token, before anything else
    token = [] if users.open else [Security(HTTPBearer(auto_error=False))]
    app.include_router(routes.simulator, dependencies=token)  # first, as they are tried in this order
    app.include_router(routes.insight, dependencies=token)
    app.include_router(routes.public)
    app.include_router(page.router)
    app.add_exception_handler(ServiceError, _on_service_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_invalid_parameter)
    app.add_middleware(RequestMiddleware, users=users, settings=settings, in_flight=in_flight, metrics=metrics)
    return app


async def _on_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return error_response(request, error)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, 'malformed')
    return error_response(request, ServiceError(error.status_code, code, error.detail, error.headers))


async def _on_invalid_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = [f'{" ".join(map(str, fault["loc"]))}: {fault["msg"]}' for fault in error.errors()]
    return error_response(request, invalid('; '.join(faults)))
