"""Users and their tokens: a JSON file with names and SHA-256 hashes, never the tokens themselves.

A token has 256 random bits, so that its hash needs no salt and cannot be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from internutopia.util import log

LOCAL_USER = 'local'
"""Name of the single user of a server without a tokens file."""


class User(BaseModel):
    """A user; an `admin` may see the sessions of all users."""

    model_config = ConfigDict(extra='forbid', frozen=True)

    name: Annotated[str, Field(pattern='^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$')]
    sha256: Annotated[str, Field(pattern='^[0-9a-f]{64}$')]
    admin: bool = False


class TokensFile(BaseModel):
    """The content of a tokens file."""

    model_config = ConfigDict(extra='forbid')

    users: list[User] = []

    @field_validator('users')
    @classmethod
    def _check_names(cls, users: list[User]) -> list[User]:
        names = [user.name for user in users]
        if len(set(names)) < len(names):
            raise ValueError('a user is listed twice')
        return users


def read_tokens(path: Path) -> list[User]:
    """Read the users of a file. OSError if it cannot be read, ValueError if it is invalid or others may write it."""
    if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError(f'{path} can be written by others than its owner: chmod 600 {path}')
    try:
        return TokensFile.model_validate_json(path.read_bytes()).users
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = '.'.join(map(str, fault['loc']))
        raise ValueError(f'{path} is not a tokens file: {place + ": " if place else ""}{fault["msg"]}') from None


def add_token(path: Path, name: str, admin: bool = False) -> str:
    """Add a user to a file, created if missing; returns the token, which is not stored. ValueError for a bad name."""
    users = read_tokens(path) if path.exists() else []
    if any(user.name == name for user in users):
        raise ValueError(f'user {name!r} already has a token: remove it first')
    token = secrets.token_urlsafe(32)
    try:
        user = User(name=name, sha256=_hash(token), admin=admin)
    except ValidationError:
        raise ValueError(f'user {name!r}: a name is 1 to 64 letters, digits, "_", "." or "-"') from None
    _write(path, [*users, user])
    return token


def remove_token(path: Path, name: str) -> None:
    """Remove a user from a file. ValueError if there is no such user."""
    users = read_tokens(path)
    left = [user for user in users if user.name != name]
    if len(left) == len(users):
        raise ValueError(f'{path} has no user {name!r}; it has {", ".join(user.name for user in users) or "none"}')
    _write(path, left)


class Users:
    """The users of a server.

    Args:
        path: tokens file, read again whenever it has changed; if it cannot be read then, the users of before remain.
            None means a single user, who needs no token and may see everything.

    Raises:
        OSError, ValueError: see `read_tokens`.
    """

    def __init__(self, path: Path | None):
        self._path = path
        self._users = [] if path is None else read_tokens(path)
        self._stamp = self._current_stamp()
        self._everybody = User(name=LOCAL_USER, sha256='0' * 64, admin=True)

    @property
    def open(self) -> bool:
        """True if no token is needed."""
        return self._path is None

    def look_up(self, authorization: str | None) -> User | None:
        """Return the user whose token a header `Bearer TOKEN` holds; None if no user has it."""
        if self._path is None:
            return self._everybody
        self._refresh()
        scheme, _, token = (authorization or '').partition(' ')
        given = _hash(token.strip())
        found = None
        for user in self._users:  # all of them, so that the time reveals nothing
            if hmac.compare_digest(user.sha256, given):
                found = user
        return found if scheme.lower() == 'bearer' else None

    def _refresh(self) -> None:
        stamp = self._current_stamp()
        if stamp == self._stamp or self._path is None:
            return
        self._stamp = stamp
        try:
            self._users = read_tokens(self._path)
        except (OSError, ValueError) as error:
            log.error('the tokens file cannot be read, its users remain unchanged: %s', error)

    def _current_stamp(self) -> tuple[int, ...] | None:
        try:
            status = None if self._path is None else self._path.stat()
        except OSError:
            return None
        return None if status is None else (status.st_mtime_ns, status.st_ino, status.st_size, status.st_mode)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode('utf-8', 'surrogateescape')).hexdigest()


def _write(path: Path, users: list[User]) -> None:
    """Replace a file atomically, readable by its owner only."""
    draft = path.with_name(f'.{path.name}.{os.getpid()}')
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w', encoding='utf-8') as file:
        file.write(TokensFile(users=users).model_dump_json(indent=2) + '\n')
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
