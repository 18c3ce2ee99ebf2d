"""Commands `internutopia serve` and `internutopia token`: the server, and the users of one."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.command import command
from internutopia.cli.options import Quiet, number_option
from internutopia.util.bounds import MAX_THREADS
from internutopia.util.imports import install_hint

token_app = typer.Typer(help='Manage the users of a server.', no_args_is_help=True)
_TokensFile = Annotated[Path, typer.Option('--file', help='Tokens file.', metavar='FILE')]
_UserName = Annotated[str, typer.Argument(help='Name of the user.', metavar='NAME')]


@command('serve {config}')
def serve(
    config: Annotated[Path, typer.Argument(help='Run file with learning tasks.', metavar='CONFIG.yaml')],
    host: Annotated[
        str, typer.Option(help='Address to listen on; other than loopback requires --tokens.')
    ] = '127.0.0.1',
    port: Annotated[int, number_option(min=0, max=65535, help='Port to listen on; 0: any free port.')] = 8001,
    tokens: Annotated[
        Path | None, typer.Option(help='Tokens file of the users, see `internutopia token`.', metavar='FILE')
    ] = None,
    ssl_certfile: Annotated[
        Path | None, typer.Option(help='Certificate in PEM format; enables TLS (https).', metavar='FILE')
    ] = None,
    ssl_keyfile: Annotated[
        Path | None, typer.Option(help='Private key, if it is not in the certificate file.', metavar='FILE')
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(help='Address or network of a trusted proxy (X-Forwarded-For); repeatable.'),
    ] = None,
    max_sessions: Annotated[int | None, number_option(min=1, help='Maximum number of sessions; default: 64.')] = None,
    user_sessions: Annotated[
        int | None, number_option(min=1, help='Maximum number of sessions per user; default: 4.')
    ] = None,
    user_envs: Annotated[
        int | None,
        number_option(min=1, max=65536, help='Maximum number of envs per user, over all sessions; default: 1024.'),
    ] = None,
    requests_per_second: Annotated[
        float | None, number_option(min=0.1, help='Sustained request rate per user; default: 200.')
    ] = None,
    burst: Annotated[int | None, number_option(min=1, help='Maximum burst of requests per user; default: 400.')] = None,
    user_in_flight: Annotated[
        int | None, number_option(min=1, help='Maximum number of pending requests per user; default: 64.')
    ] = None,
    address_connections: Annotated[
        int | None, number_option(min=1, help='Maximum number of connections per client address; default: 512.')
    ] = None,
    max_body: Annotated[
        int | None, number_option(min=1024, help='Maximum request size in bytes; default: 16 MiB.')
    ] = None,
    max_step_size: Annotated[
        int | None, number_option(min=1, max=65536, help='Maximum number of steps per request; default: 1000.')
    ] = None,
    idle_timeout: Annotated[
        float | None, number_option(min=0.1, help='Seconds until an idle session is closed; default: 900.')
    ] = None,
    threads: Annotated[
        int | None, number_option(min=1, max=MAX_THREADS, help='Threads of the physics engine per session; default: 1.')
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Serve the envs of a run file over HTTP."""
    from internutopia.cli.run_file import read_run_file

    try:
        from internutopia.remote.server.serve import Certificate
        from internutopia.remote.server.serve import serve as run_server
        from internutopia.remote.server.server_settings import Settings
    except ImportError as error:
        raise ImportError(f'serving needs {error.name!r}: {install_hint("remote")}') from error
    _log_to_stderr(logging.ERROR if quiet else logging.INFO)
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
    settings = Settings(**{name: value for name, value in limits.items() if value is not None})
    if ssl_keyfile is not None and ssl_certfile is None:
        raise ValueError('--ssl-keyfile needs --ssl-certfile, the certificate of the key')
    tls = None if ssl_certfile is None else Certificate(ssl_certfile, ssl_keyfile)
    run_server(read_run_file(config).config, host, port, tokens, settings, tls)
    return 0


def _log_to_stderr(level: int) -> None:
    """Log to stderr, one line of `key=value` per event."""
    logging.basicConfig(
        level=logging.WARNING,
        stream=sys.stderr,
        format='time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s',
    )
    logging.getLogger('internutopia').setLevel(level)


@token_app.command('add')
@command('token add')
def add_user(
    name: _UserName,
    file: _TokensFile,
    admin: Annotated[bool, typer.Option('--admin', help='Give the user access to the sessions of all others.')] = False,
) -> int:
    """Create a token for a user and print it."""
    from internutopia.remote.server.users import add_token

    print(add_token(file, name, admin))
    print(f'this is the token of {name}: it cannot be shown again, {file} only has its hash', file=sys.stderr)
    return 0


@token_app.command('remove')
@command('token remove')
def remove_user(name: _UserName, file: _TokensFile) -> int:
    """Revoke the token of a user, also in a running server."""
    from internutopia.remote.server.users import remove_token

    remove_token(file, name)
    return 0


@token_app.command('list')
@command('token list')
def list_users(file: _TokensFile) -> int:
    """Print the names of the users."""
    from internutopia.remote.server.users import read_tokens

    for user in read_tokens(file):
        print(f'{user.name} (admin)' if user.admin else user.name)
    return 0
