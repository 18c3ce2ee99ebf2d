"""Page server: viser's web server, which answers only at addresses that begin with a secret token."""

from __future__ import annotations

import hmac
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from internutopia.util.imports import install_hint
from internutopia.util.log import log

if TYPE_CHECKING:
    import viser

_starting = threading.Lock()
Routes = Mapping[str, Callable[[str], None]]
"""Handlers of a request's query, by the path below the token; they raise a ValueError for an invalid query."""


def start_server(host: str, port: int, token: str, routes: Routes) -> viser.ViserServer:
    """Start a server at `/<token>/` of a host and port; 0 means any free port.

    `routes` are looked up with each request, on the server's loop; all else is the page's.

    Raises:
        ImportError: viser is missing; the message has the command that installs it.
        OSError: nothing can listen at that address.
    """
    try:
        import viser
    except ImportError as error:
        raise ImportError(f'the viewer needs viser ({error}): {install_hint("viewer")}') from error
    _check_address(host, port)
    with _starting, _behind_token(token, routes), _silence():
        server = viser.ViserServer(host, port, label='InternUtopia', verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def stop_server(server: viser.ViserServer) -> None:
    """Stop a server; its pages show that they are not connected."""
    with _silence():
        server.stop()


def address_of(server: viser.ViserServer, token: str) -> str:
    """Return the address for a browser."""
    host = server.get_host()
    return f'http://{f"[{host}]" if ":" in host else host}:{server.get_port()}/{token}/'


def _check_address(host: str, port: int) -> None:
    """Raise an OSError if the address is not free: viser itself would try other ports, or wait forever."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise OSError(f'the viewer cannot listen at {host}:{port}: {error.strerror or error}') from error


@contextmanager
def _behind_token(token: str, routes: Routes) -> Iterator[None]:
    """Return a context in which a viser server starts with a required token, for which viser has no option.

    Its page connects to the address that it was loaded from, so that the token need not be given twice.
    """
    import websockets.asyncio.server as library

    serve: Any = library.serve
    logger = log.getChild('viewer')
    logger.addFilter(_is_ours)

    def guarded(*args: Any, process_request: Any, **options: Any) -> Any:
        def check(connection: Any, request: Any) -> Any:
            path, _, query = request.path.partition('?')
            given, _, rest = path.removeprefix('/').partition('/')
            if not hmac.compare_digest(given.encode(errors='surrogateescape'), token.encode()):
                return connection.respond(403, 'Open the address that the viewer printed, with its token.\n')
            if rest in routes:
                try:
                    routes[rest](query)
                except ValueError as error:
                    return connection.respond(400, f'{error}\n')
                return connection.respond(204, '')
            request.path = f'/{rest}?{query}'
            return process_request(connection, request)

        return serve(*args, process_request=check, logger=logger, **options)

    library.serve = guarded  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        library.serve = serve


def _is_ours(record: logging.LogRecord) -> bool:
    """Return True for log records of the server, except those of malformed requests and closed connections."""
    from websockets.exceptions import WebSocketException

    error = record.exc_info and record.exc_info[1]
    return not isinstance(error, WebSocketException | OSError | EOFError)


@contextmanager
def _silence() -> Iterator[None]:
    """Return a context in which viser prints nothing; the caller announces the address."""
    import rich

    console = rich.get_console()
    quiet, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = quiet
