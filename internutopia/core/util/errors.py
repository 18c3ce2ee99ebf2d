"""Errors about one env, which carry its id."""

from __future__ import annotations

from typing import Any


class EnvError(Exception):
    """Something is wrong with one env, or with what was given for it.

    Attributes:
        env_id: the env; the message names it, too.
    """

    def __init__(self, env_id: int, message: str):
        super().__init__(message)
        self.env_id = env_id

    def __reduce__(self) -> Any:
        return type(self), (self.env_id, *self.args)


class EnvValueError(EnvError, ValueError):
    """What was given for one env is wrong, or the env is not in a state for it."""


class EnvKeyError(EnvError, KeyError):
    """One env has nothing of that name."""


class EnvRuntimeError(EnvError, RuntimeError):
    """Now is not the time to do that with one env."""
