"""Errors about one env, which carry its id, and errors on their way to another process."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any


class EnvError(Exception):
    """An error about one env, or a value given for it.

    Attributes:
        env_id: the env; the message names it, too.
    """

    def __init__(self, env_id: int, message: str):
        super().__init__(message)
        self.env_id = env_id

    def __reduce__(self) -> Any:
        return type(self), (self.env_id, *self.args)


class EnvValueError(EnvError, ValueError):
    """A value given for one env is invalid, or the env is not in a state for it."""


class EnvKeyError(EnvError, KeyError):
    """A name that one env does not have."""


class EnvRuntimeError(EnvError, RuntimeError):
    """A call that one env does not allow in its state."""


def located(
    error: Exception,
    place: str,
    mistakes: tuple[type[Exception], ...],
    pickled: Callable[[Any], bytes] = pickle.dumps,
) -> Exception:
    """Return an error for another process: a note names its origin, and it can be pickled.

    Args:
        error: what was raised.
        place: where.
        mistakes: of the user; of others the note has the traceback, too.
        pickled: how it is pickled. What cannot be becomes a RuntimeError of its text.
    """
    text = ''.join(traceback.format_exception(error))
    try:
        pickle.loads(pickled(error))
    except Exception:
        error = RuntimeError(f'{type(error).__name__}: {error}')
    error.add_note(f'in {place}' if isinstance(error, mistakes) else f'in {place}:\n{text}')
    return error
