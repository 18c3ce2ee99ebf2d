"""Command `internutopia serve`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from internutopia.cli.command import guarded
from internutopia.util.bounds import MAX_THREADS
from internutopia.util.install import install_hint


def serve_command(
    config: Annotated[
        Path, typer.Argument(help='YAML file of a run whose tasks say what is learned.', metavar='CONFIG.yaml')
    ],
    host: Annotated[
        str, typer.Option(help='Address to listen at; one that others can reach needs --tokens.')
    ] = '127.0.0.1',
    port: Annotated[int, typer.Option(min=0, max=65535, help='Port to listen at; 0 takes a free one.')] = 8001,
    tokens: Annotated[
        Path | None, typer.Option(help="Users' tokens, see `internutopia token`.", metavar='FILE')
    ] = None,
    ssl_certfile: Annotated[
        Path | None, typer.Option(help='Certificate of the server in PEM: serves TLS (https).', metavar='FILE')
    ] = None,
    ssl_keyfile: Annotated[
        Path | None, typer.Option(help='Its private key, if it is in a file of its own.', metavar='FILE')
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(help='Address or network of a proxy whose X-Forwarded-For counts; may come several times.'),
    ] = None,
    max_sessions: Annotated[int | None, typer.Option(min=1, help='Sessions at a time; default: 64.')] = None,
    user_sessions: Annotated[int | None, typer.Option(min=1, help='Sessions of a user; default: 4.')] = None,
    user_envs: Annotated[
        int | None, typer.Option(min=1, max=65536, help='Envs of a user over all sessions; default: 1024.')
    ] = None,
    requests_per_second: Annotated[
        float | None, typer.Option(min=0.1, help='Requests of a user, over a longer time; default: 200.')
    ] = None,
    burst: Annotated[int | None, typer.Option(min=1, help='Requests of a user at once; default: 400.')] = None,
    user_in_flight: Annotated[
        int | None, typer.Option(min=1, help='Requests of a user in flight at a time; default: 64.')
    ] = None,
    address_connections: Annotated[
        int | None, typer.Option(min=1, help='Open connections of an address; default: 512.')
    ] = None,
    max_body: Annotated[int | None, typer.Option(min=1024, help='Size of a request in bytes; default: 16 MiB.')] = None,
    max_step_size: Annotated[int | None, typer.Option(min=1, max=65536, help='Steps of a call; default: 1000.')] = None,
    idle_timeout: Annotated[
        float | None, typer.Option(min=0.1, help='Seconds after which an unused session ends; default: 900.')
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MAX_THREADS, help='Threads of physics of a session; default: 1.')
    ] = None,
    quiet: Annotated[bool, typer.Option('--quiet', help='Log errors only.')] = False,
) -> None:
    """Let others run the envs of a YAML config, over HTTP."""
    limits = {
        'max_sessions': max_sessions,
        'user_sessions': user_sessions,
        'user_envs': user_envs,
        'requests_per_second': requests_per_second,
        'burst': burst,
        'user_in_flight': user_in_flight,
        'address_connections': address_connections,
        'max_body': max_body,
        'max_step_size': max_step_size,
        'idle_timeout': idle_timeout,
        'threads': threads,
        'trusted_proxies': trusted_proxy,
    }
    raise typer.Exit(
        serve(
            config,
            host=host,
            port=port,
            tokens=tokens,
            certificate=ssl_certfile,
            key=ssl_keyfile,
            quiet=quiet,
            limits=limits,
        )
    )


def serve(
    path: Path,
    *,
    host: str,
    port: int,
    tokens: Path | None,
    certificate: Path | None,
    key: Path | None,
    quiet: bool,
    limits: dict[str, Any],
) -> int:
    """Serve a run file until SIGINT or SIGTERM; returns the exit code.

    Args:
        path: the run file; its `actions` are ignored, clients send theirs.
        host: address to listen at.
        port: port to listen at, 0 for a free one.
        tokens: tokens file.
        certificate: certificate for TLS.
        key: private key of the certificate, if it is in another file.
        quiet: log errors only.
        limits: fields of `Settings`; None means the default.
    """

    def start() -> int:
        from internutopia.cli.run_file import read_run_file

        try:
            from internutopia.remote.server.serve import Certificate
            from internutopia.remote.server.serve import serve as run_server
            from internutopia.remote.server.settings import Settings
        except ImportError as error:
            raise ImportError(f'serving needs {error.name!r}: {install_hint("remote")}') from error
        _log_to_stderr(logging.ERROR if quiet else logging.INFO)
        settings = Settings(**{name: value for name, value in limits.items() if value is not None})
        if key is not None and certificate is None:
            raise ValueError('--ssl-keyfile: the key of which certificate? give --ssl-certfile, too')
        tls = None if certificate is None else Certificate(certificate, key)
        run_server(read_run_file(path).config, host, port, tokens, settings, tls)
        return 0

    return guarded(f'serve {path}', start)


def _log_to_stderr(level: int) -> None:
    """Log to stderr, one line of `key=value` per event."""
    logging.basicConfig(
        level=logging.WARNING,
        stream=sys.stderr,
        format='time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s',
    )
    logging.getLogger('internutopia').setLevel(level)
