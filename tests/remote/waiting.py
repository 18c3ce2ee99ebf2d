"""Waiting for what will be true, and a clock that need not be waited for."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

PATIENCE = 300.0  # s, within which anything happens that happens at all: a busy machine is slow


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class FakeTime:
    """Stands in for `time` in a module under test: its clock can be moved on, and pauses take no time.

    Attributes:
        pauses: how long was slept each time [s].
    """

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._skipped = 0.0

    def monotonic(self) -> float:
        """The clock [s]."""
        return time.monotonic() + self._skipped

    def skip(self, seconds: float) -> None:
        """Move the clock on."""
        self._skipped += seconds

    def sleep(self, seconds: float) -> None:
        """Move the clock on instead of waiting."""
        self.pauses.append(seconds)
        self.skip(seconds)
