"""The logger of the whole project; it has no handler and no level of its own."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache

log = logging.getLogger('internutopia')
"""The logger."""


@dataclass(frozen=True)
class Warned:
    """A logged warning: its text, if equal ones are logged once only, and if the same work would log it again."""

    text: str
    once: bool = False
    lasting: bool = True

    def emit(self) -> None:
        """Log it, or log it again: as it was, or would have been if it was not a repetition."""
        record = _record.get()
        if record is not None:
            record.append(self)
        if self.once:
            _log_once(self.text, logging.WARNING)
        else:
            log.warning('%s', self.text)


_record: ContextVar[list[Warned] | None] = ContextVar('record', default=None)


def warn(message: str, *args: object, lasting: bool = True) -> None:
    """Log a warning; not `lasting`: of the machine or the moment, so that another attempt may do without it."""
    Warned(message % args if args else message, lasting=lasting).emit()


def warn_once(message: str, *args: object, lasting: bool = True) -> None:
    """As `warn`; the same one, of equal arguments, only once in a process."""
    Warned(message % args if args else message, once=True, lasting=lasting).emit()


def info_once(message: str, *args: object) -> None:
    """Log an information; the same one, of equal arguments, only once in a process."""
    _log_once(message % args if args else message, logging.INFO)


@contextmanager
def recorded_warnings() -> Iterator[list[Warned]]:
    """Collect the warnings that are logged in this block and thread in the list it yields.

    One within another: both have the warnings of the inner one.
    """
    record: list[Warned] = []
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)
        outer = _record.get()
        if outer is not None:
            outer += record


@lru_cache(10_000)
def _log_once(text: str, level: int) -> None:
    log.log(level, '%s', text)
