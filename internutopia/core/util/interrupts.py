"""Interrupts: Ctrl-C, and what else asks a program to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Interruption:
    """Whether a signal has asked the program to stop, and which one."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def is_set(self) -> bool:
        """Whether one has come."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """128 + the number of the signal, as shells say it; 0 if none has come."""
        return 0 if self.signal is None else 128 + self.signal


@contextmanager
def interrupts(*signals: signal.Signals) -> Iterator[Interruption]:
    """These signals are noted instead of ending the process at any place; a second one does end it."""
    interruption = Interruption()

    def on_interrupt(number: int, _: object) -> None:
        if interruption.is_set():
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        interruption.signal = number

    before = {each: signal.signal(each, on_interrupt) for each in signals}
    try:
        yield interruption
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
