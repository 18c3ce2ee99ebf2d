"""Timing side by side, on a machine that does other things too.

Contenders take turns of a few steps each, so that all of them meet the same disturbances. What counts is the median of
the ratios of single turns; the quartiles next to it say how much the turns differed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Step = Callable[[int], object]


class Ratio(NamedTuple):
    """Median over the turns, with the quartiles around it."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `bound` is for the ratio, or `ours` where there is none: `limit='at least'` or `'at most'`. `ours` and `reference`
    are in `unit`; None stands for what was not measured.
    """

    what: str
    unit: str
    ours: float | None = None
    reference: float | None = None
    ratio: Ratio | None = None
    bound: float | None = None
    limit: Literal['at least', 'at most'] = 'at least'
    note: str = ''

    @property
    def verdict(self) -> str:
        """`'ok'` or `'missed'`; `'skipped'` if nothing was measured, `'-'` without a bound."""
        value = self.ratio.median if self.ratio else self.ours
        if value is None:
            return 'skipped'
        if self.bound is None:
            return '-'
        return 'ok' if (value >= self.bound if self.limit == 'at least' else value <= self.bound) else 'missed'

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain JSON."""
        ratio = self.ratio or Ratio(math.nan, math.nan, math.nan)
        ratios = {f'ratio{end}': value for end, value in zip(('', '_low', '_high'), ratio, strict=True)}
        values = vars(self) | ratios | {'verdict': self.verdict}
        return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in values.items()}


class Race:
    """Seconds per step of each contender, turn by turn."""

    def __init__(self, seconds: Mapping[str, NDArray[np.float64]]):
        self._seconds = seconds

    def median(self, name: str) -> float:
        """Return the seconds per step of one contender."""
        return float(np.median(self._seconds[name]))

    def speed(self, name: str, reference: str) -> Ratio:
        """Return a contender's speed as a multiple of the reference's."""
        return quartiles(self._seconds[reference] / self._seconds[name])


def quartiles(values: Sequence[float] | NDArray[np.float64]) -> Ratio:
    """Return the median of what turns gave, and how much they differ."""
    low, median, high = np.percentile(np.asarray(values, np.float64), [25, 50, 75])
    return Ratio(float(median), float(low), float(high))


def race(
    contenders: Mapping[str, Step],
    reset: Callable[[], object],
    *,
    rounds: int,
    steps: int,
    turn: int,
    before_turn: Callable[[], object] = lambda: None,
) -> Race:
    """Run the contenders on the same course, alternating.

    Args:
        contenders: what is timed, `step(k)` for the k-th step of a round.
        reset: puts all contenders at the start; not timed, called before each round.
        rounds: number of rounds that count; one more is run first, to warm up.
        steps: steps of a round.
        turn: steps that a contender makes before the next one gets its turn.
        before_turn: called before each turn of each contender; not timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    for _ in range(rounds + 1):
        reset()
        for start in range(0, steps, turn):
            for name in order:
                step = contenders[name]
                before_turn()
                begin = time.perf_counter()
                for k in range(start, start + turn):
                    step(k)
                seconds[name].append((time.perf_counter() - begin) / turn)
            order.reverse()
    return Race({name: np.array(values[steps // turn :]) for name, values in seconds.items()})


def seconds_of(action: Callable[[], object]) -> float:
    """Return the time that a call takes [s]."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin
