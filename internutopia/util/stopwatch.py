"""Stopwatch: the time that blocks of code take together."""

from __future__ import annotations

import time


class Stopwatch:
    """Sum of the times of `with` blocks.

    Attributes:
        seconds: the sum so far [s].
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._start = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._start
