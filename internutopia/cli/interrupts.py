"""Ctrl-C, and what else asks a command to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit code of a command that was asked to stop."""


@contextmanager
def interrupts(*signals: signal.Signals) -> Iterator[threading.Event]:
    """These signals set the event instead of ending the process at any place; a second one does end it."""
    interrupted = threading.Event()

    def on_interrupt(*_: object) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    before = {each: signal.signal(each, on_interrupt) for each in signals}
    try:
        yield interrupted
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
