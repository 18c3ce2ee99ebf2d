"""Commands `internutopia token`: who may use a server."""

from __future__ import annotations

import sys
from pathlib import Path

from internutopia.cli.errors import guarded


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
