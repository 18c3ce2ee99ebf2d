"""Columns of a grid: what solids fill of them, and the gaps in between that an agent could stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from internutopia.navigation.agent import Agent
from internutopia.navigation.solids import Solid

Array = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Grid:
    """Square columns, with empty ones around so that none that is filled has neighbours beyond the grid.

    Attributes:
        spacing: width of a column [m].
        first, last: `(2,)` the first and the last one that may be filled: `(i, j)` is the square from
            `(i, j) * spacing` to `(i + 1, j + 1) * spacing`.
        pad: number of empty columns on each side.
    """

    spacing: float
    first: Ints
    last: Ints
    pad: int

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of columns along x and y, empty ones included."""
        x, y = (self.last - self.first + 1 + 2 * self.pad).tolist()
        return x, y

    def number(self, i: Ints, j: Ints) -> Ints:
        """Return flat numbers of columns."""
        return (i - self.first[0] + self.pad) * self.shape[1] + (j - self.first[1] + self.pad)

    def columns(self, number: Ints) -> Ints:
        """Return columns `(n, 2)` of flat numbers `(n,)`."""
        return np.stack(np.divmod(number, self.shape[1]), axis=1) + self.first - self.pad


@dataclass(frozen=True)
class Fillings:
    """Filled parts of columns, by column and from below.

    Attributes:
        column: `(n,)` flat number of the column.
        low, high: `(n,)` from where to where it is filled [m].
        steep: `(n,)` whether the top is too steep to stand on.
        solid: `(n,)` which solid fills it.
    """

    column: Ints
    low: Array
    high: Array
    steep: NDArray[np.bool_]
    solid: Ints

    @classmethod
    def of(cls, solids: Sequence[Solid], grid: Grid) -> Fillings:
        """Compute the filled parts of columns from solids."""
        spacing = grid.spacing
        found: list[tuple[Ints, Array, Array, NDArray[np.bool_]]] = []
        corners = np.array([[solid.low, solid.high] for solid in solids]).reshape(-1, 2, 3)
        columns = np.clip(np.floor(corners[:, :, :2] / spacing), grid.first, grid.last).astype(int)
        for solid, (begin, end) in zip(solids, columns, strict=True):
            i, j = np.arange(begin[0], end[0] + 1), np.arange(begin[1], end[1] + 1)
            spans = solid.spans((i + 0.5) * spacing, (j + 0.5) * spacing, spacing)
            at, across = np.nonzero(spans.inside)
            place = at, across
            found.append((grid.number(i[at], j[across]), spans.low[place], spans.high[place], spans.steep[place]))
        if not found:
            return cls(np.zeros(0, np.intp), np.zeros(0), np.zeros(0), np.zeros(0, bool), np.zeros(0, np.intp))
        column, low, high, steep = (np.concatenate(parts) for parts in zip(*found, strict=True))
        number = np.repeat(np.arange(len(solids)), [len(parts[0]) for parts in found])
        heights = corners[:, :, 2][np.isfinite(corners[:, :, 2])]
        bounds = heights.min(initial=0.0) - 1.0, heights.max(initial=0.0) + 1.0  # for what has none
        low, high = np.clip(low, *bounds), np.clip(high, *bounds)
        order = np.lexsort((low, column))
        return cls(column[order], low[order], high[order], steep[order], number[order])


@dataclass(frozen=True)
class Gaps:
    """Gaps above the filled parts of columns, by column and from below.

    Attributes:
        column: `(n,)` flat number of the column.
        floor, ceiling: `(n,)` from where to where it is empty [m].
        steep: `(n,)` whether its floor is too steep to stand on.
        layer: `(n,)` number of gaps below it in its column.
    """

    column: Ints
    floor: Array
    ceiling: Array
    steep: NDArray[np.bool_]
    layer: Ints

    @classmethod
    def above(cls, fillings: Fillings, agent: Agent) -> Gaps:
        """Return the gaps that could matter to an agent."""
        column, low, high = fillings.column, fillings.low, fillings.high
        if not len(column):
            return cls(column, low, high, fillings.steep, column)
        reach = float(high.max() - low.min()) + 1.0
        level = high - low.min() + column * reach
        top = np.maximum.accumulate(level)  # of all below in the same column
        owner = np.maximum.accumulate(np.where(level >= top, np.arange(len(top)), 0))
        floor = high[owner]
        ends = np.append(column[1:] != column[:-1], True)
        ceiling = np.where(ends, np.inf, np.append(low[1:], np.inf))
        kept = ceiling - floor >= agent.height - agent.step_height
        column, floor, ceiling, steep = column[kept], floor[kept], ceiling[kept], fillings.steep[owner][kept]
        starts = np.flatnonzero(np.append(True, column[1:] != column[:-1])) if len(column) else np.zeros(0, int)
        layer = np.arange(len(column)) - np.repeat(starts, np.diff(np.append(starts, len(column))))
        return cls(column, floor, ceiling, steep, layer)

    def standing(self, agent: Agent) -> NDArray[np.bool_]:
        """Return whether the agent fits into each gap, bool `(n,)`."""
        return self.ceiling - self.floor >= agent.height

    def index(self, count: int) -> list[Ints]:
        """Return by layer the index of the gap in each of so many columns; -1 for none."""
        index = np.full((int(self.layer.max()) + 1, count), -1)
        index[self.layer, self.column] = np.arange(len(self.column))
        return list(index)
