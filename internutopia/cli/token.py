"""Commands `internutopia token`: names and hashes of the users of a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from internutopia.cli.command import guarded

token_app = typer.Typer(help='Say who may use a server: names and hashes of tokens in a file.', no_args_is_help=True)
_TokensFile = Annotated[Path, typer.Option('--file', help='The tokens file.', metavar='FILE')]
_UserName = Annotated[str, typer.Argument(help='Name of the user.', metavar='NAME')]


@token_app.command('add')
def token_add_command(
    name: _UserName,
    file: _TokensFile,
    admin: Annotated[bool, typer.Option('--admin', help='Let the user see the sessions of all others.')] = False,
) -> None:
    """Make a token for a user, and print it."""
    raise typer.Exit(add(name, file, admin))


@token_app.command('remove')
def token_remove_command(name: _UserName, file: _TokensFile) -> None:
    """Take a user's token away; a running server notices."""
    raise typer.Exit(remove(name, file))


@token_app.command('list')
def token_list_command(file: _TokensFile) -> None:
    """Print the names of the users."""
    raise typer.Exit(show(file))


def add(name: str, file: Path, admin: bool) -> int:
    """Make a token for a user and print it, once; returns the exit code."""

    def start() -> int:
        from internutopia.remote.server.users import add_token

        print(add_token(file, name, admin))
        print(f'this is the token of {name}: it cannot be shown again, {file} only has its hash', file=sys.stderr)
        return 0

    return guarded('token add', start)


def remove(name: str, file: Path) -> int:
    """Take a user's token away; returns the exit code."""

    def start() -> int:
        from internutopia.remote.server.users import remove_token

        remove_token(file, name)
        return 0

    return guarded('token remove', start)


def show(file: Path) -> int:
    """Print the names of the users, one a line; returns the exit code."""

    def start() -> int:
        from internutopia.remote.server.users import read_tokens

        for user in read_tokens(file):
            print(f'{user.name} (admin)' if user.admin else user.name)
        return 0

    return guarded('token list', start)
