"""Commands of the server: `serve` and `token`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from internutopia.util.bounds import MAX_THREADS

token_app = typer.Typer(help='Say who may use a server: names and hashes of tokens in a file.', no_args_is_help=True)
_TokensFile = Annotated[Path, typer.Option('--file', help='The tokens file.', metavar='FILE')]
_UserName = Annotated[str, typer.Argument(help='Name of the user.', metavar='NAME')]


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
    from internutopia.cli.serve import serve

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


@token_app.command('add')
def token_add_command(
    name: _UserName,
    file: _TokensFile,
    admin: Annotated[bool, typer.Option('--admin', help='Let the user see the sessions of all others.')] = False,
) -> None:
    """Make a token for a user, and print it."""
    from internutopia.cli import token

    raise typer.Exit(token.add(name, file, admin))


@token_app.command('remove')
def token_remove_command(name: _UserName, file: _TokensFile) -> None:
    """Take a user's token away; a running server notices."""
    from internutopia.cli import token

    raise typer.Exit(token.remove(name, file))


@token_app.command('list')
def token_list_command(file: _TokensFile) -> None:
    """Print the names of the users."""
    from internutopia.cli import token

    raise typer.Exit(token.show(file))
