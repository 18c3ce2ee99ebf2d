"""Life of the server: it listens and serves until it is told to stop."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from pathlib import Path
from types import FrameType

import uvicorn
from typing_extensions import override

from internutopia.core.config import Config
from internutopia.core.util.interrupts import interrupts
from internutopia.remote.server.app import create_app
from internutopia.remote.server.metrics import Metrics
from internutopia.remote.server.session_manager import SessionManager
from internutopia.remote.server.settings import Settings
from internutopia.remote.server.users import Users

_BACKLOG = 2048
_GRACE = 30  # s that calls at work have to finish when the server is told to stop


def serve(config: Config, host: str, port: int, tokens: Path | None, settings: Settings) -> None:
    """Serve a config; prints the address when all is ready, and returns after SIGINT or SIGTERM.

    Args:
        config: what every session runs.
        host: address to listen at.
        port: port to listen at; 0 takes a free one.
        tokens: tokens file; None serves only this machine, without tokens.
        settings: limits.

    Raises:
        ValueError: the config does not work, the tokens file is wrong, or there is none and `host` is not of this
            machine only.
        OSError: the tokens file cannot be read, or the address not be listened at.
    """
    users = Users(tokens)
    with listen(host, port, users.open) as sock:
        asyncio.run(_serve(config, sock, users, settings))


class Server(uvicorn.Server):
    """A server whose config works: `await server.serve([listen(...)])` returns when it was told to stop.

    Everything at work is finished then, and all workers are gone. `should_exit = True` tells it to stop, as do SIGINT
    and SIGTERM in the main thread.
    """

    def __init__(self, session_manager: SessionManager, users: Users, metrics: Metrics):
        super().__init__(
            uvicorn.Config(
                create_app(session_manager, users, metrics),
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # nobody's word for who calls
                ws='none',
                limit_concurrency=session_manager.settings.connections,
                timeout_graceful_shutdown=_GRACE,
            )
        )
        self._session_manager = session_manager

    @classmethod
    async def of(cls, config: Config, users: Users, settings: Settings) -> Server:
        """A server of a config that is tried first. ValueError if it does not work."""
        metrics = Metrics()
        session_manager = SessionManager(config, settings, metrics)
        try:
            await session_manager.probe()
        except BaseException:
            await session_manager.close()
            raise
        return cls(session_manager, users, metrics)

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal: what waits is refused from now on."""
        self._session_manager.shut_down()
        super().handle_exit(sig, frame)


def listen(host: str, port: int, local_only: bool) -> socket.socket:
    """A socket that takes connections. ValueError if others could reach it, but `local_only` is wanted."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror as error:
        raise OSError(error.errno, error.strerror, host) from None
    if local_only and not ipaddress.ip_address(address[0]).is_loopback:
        raise ValueError(
            f'--host {host}: others could reach this address, and without tokens anybody may use the server; give '
            'users tokens (internutopia token add NAME --file tokens.json) and the server --tokens tokens.json'
        )
    # with the protocol, by which asyncio knows that small packets shall not wait for each other
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, error.strerror, f'{host}:{port}') from None
    return sock


async def _serve(config: Config, sock: socket.socket, users: Users, settings: Settings) -> None:
    server = await Server.of(config, users, settings)
    host, port = sock.getsockname()[:2]
    print(f'serving on http://{f"[{host}]" if ":" in host else host}:{port}', flush=True)
    with interrupts() as interruption, interruption.deferred():  # uvicorn handles them, and sends them when all is done
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # but for this one
            signal.signal(signal.SIGHUP, server.handle_exit)
        await server.serve([sock])
