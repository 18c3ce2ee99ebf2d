"""Standing surface: where an agent can stand in a scene, on a fine grid, with any number of floors above each other.

It is found as navigation meshes are made (Mononen's Recast), but exactly in radius: solids are cut into columns; what
is above the solid part of a column, and high enough, can be stood on; places next to each other are connected if the
step between them is low enough; where there is no connection there is an obstacle (or a ledge), and the axis of the
agent keeps away from it by its radius. Obstacles are never smaller than they are: where four neighbouring places of the
grid are free, the agent fits at every point between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from internutopia.navigation.agent import Agent
from internutopia.navigation.solids import Solid

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

EMPTY_EXTENT = 5.0
"""How far a scene of nothing but a ground reaches from its origin on a map [m]."""

_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
_LEVELS_CLOSE = 0.01  # m: obstacles of nearly the same level count once


@dataclass(frozen=True)
class Surface:
    """Places that an agent can stand on, as columns of a grid with heights.

    Attributes:
        spacing: of the grid [m]; column `(i, j)` is the square from `(i, j) * spacing` to `(i + 1, j + 1) * spacing`.
        columns: `(n, 2)` column of each place.
        heights: `(n,)` where its floor is [m].
        free: `(n,)` whether the agent has room there, upright and with its whole radius.
        lowest: `(n,)` whether there is no other gap below it that the agent would fit in.
    """

    spacing: float
    columns: Ints
    heights: Array
    free: NDArray[np.bool_]
    lowest: NDArray[np.bool_]

    @property
    def points(self) -> Array:
        """The places `(n, 3)`, middles of their columns, on the floor [m]."""
        return np.column_stack([(self.columns + 0.5) * self.spacing, self.heights]).astype(np.float64)


def find_surface(
    solids: Sequence[Solid], agent: Agent, spacing: float, bounds: tuple[Sequence[float], Sequence[float]] | None = None
) -> Surface:
    """Where an agent can stand among solids.

    Args:
        solids: what is in its way, and what it stands on.
        agent: the agent.
        spacing: of the grid [m].
        bounds: lowest and highest corner `(x, y)` [m] of the map, beyond which nothing is free; None: of all that is
            finite, or 5 m around the origin if nothing is.

    Raises:
        ValueError: there is nothing to stand on.
    """
    low, high = _extent(solids, bounds)
    pad = int(np.ceil(agent.radius / spacing)) + 2  # empty columns, so that none has neighbours beyond the grid
    first, last = (np.floor(corner / spacing).astype(int) for corner in (low, high))
    shape = int(last[0] - first[0]) + 1 + 2 * pad, int(last[1] - first[1]) + 1 + 2 * pad
    gaps = _gaps(solids, agent, spacing, first, last, pad, shape)
    places = gaps.standing(agent)
    if not places.any():
        raise ValueError(
            f'there is nothing to stand on: no level surface with {agent.height:.3g} m of room above it; '
            'a scene needs a floor that collides'
        )
    blocked = _blocked(gaps, places, agent, spacing, shape)
    i, j = np.divmod(gaps.column[places], shape[1])
    columns = np.stack([i + first[0] - pad, j + first[1] - pad], axis=1)
    return Surface(spacing, columns, gaps.floor[places], ~blocked[places], gaps.layer[places] == 0)


@dataclass(frozen=True)
class _Gaps:
    """Gaps between the solid parts of columns, by column and from below."""

    column: Ints
    floor: Array
    ceiling: Array
    steep: NDArray[np.bool_]  # its floor
    layer: Ints  # number of gaps below it in its column

    def standing(self, agent: Agent) -> NDArray[np.bool_]:
        return self.ceiling - self.floor >= agent.height

    def index(self, count: int) -> list[Ints]:
        """By layer, which gap each of so many columns has; -1 for none."""
        index = np.full((int(self.layer.max()) + 1, count), -1)
        index[self.layer, self.column] = np.arange(len(self.column))
        return list(index)


def _extent(solids: Sequence[Solid], bounds: tuple[Sequence[float], Sequence[float]] | None) -> tuple[Array, Array]:
    if bounds is not None:
        low, high = (np.asarray(corner, float) for corner in bounds)
        if low.shape != (2,) or high.shape != (2,) or not (np.isfinite([low, high]).all() and (low < high).all()):
            raise ValueError(f'bounds must be two corners (x, y) with the lower one first, got {bounds}')
        return low, high
    finite = [solid for solid in solids if np.isfinite([solid.low, solid.high]).all()]
    if not finite:
        return np.full(2, -EMPTY_EXTENT), np.full(2, EMPTY_EXTENT)
    return (
        np.min([solid.low[:2] for solid in finite], axis=0),
        np.max([solid.high[:2] for solid in finite], axis=0),
    )


def _gaps(
    solids: Sequence[Solid], agent: Agent, spacing: float, first: Ints, last: Ints, pad: int, shape: tuple[int, int]
) -> _Gaps:
    """The gaps of all columns that could matter to the agent."""
    column, low, high, steep = _spans(solids, spacing, first, last, pad, shape)
    if not len(column):
        return _Gaps(column, low, high, steep, column)
    order = np.lexsort((low, column))
    column, low, high, steep = column[order], low[order], high[order], steep[order]
    reach = float(high.max() - low.min()) + 1.0
    top = np.maximum.accumulate(high - low.min() + column * reach)  # of all below in the same column
    owner = np.maximum.accumulate(np.where(high - low.min() + column * reach >= top, np.arange(len(top)), 0))
    floor = high[owner]
    ends = np.append(column[1:] != column[:-1], True)
    ceiling = np.where(ends, np.inf, np.append(low[1:], np.inf))
    kept = ceiling - floor >= agent.height - agent.step_height
    column, floor, ceiling, steep = column[kept], floor[kept], ceiling[kept], steep[owner][kept]
    starts = np.flatnonzero(np.append(True, column[1:] != column[:-1])) if len(column) else np.zeros(0, int)
    layer = np.arange(len(column)) - np.repeat(starts, np.diff(np.append(starts, len(column))))
    return _Gaps(column, floor, ceiling, steep, layer)


def _spans(
    solids: Sequence[Solid], spacing: float, first: Ints, last: Ints, pad: int, shape: tuple[int, int]
) -> tuple[Ints, Array, Array, NDArray[np.bool_]]:
    """What solids fill: columns, from where to where, and whether the top is steep."""
    found: list[tuple[Ints, Array, Array, NDArray[np.bool_]]] = []
    corners = np.array([[solid.low, solid.high] for solid in solids]).reshape(-1, 2, 3)
    columns = np.clip(np.floor(corners[:, :, :2] / spacing), first, last).astype(int)
    for solid, (begin, end) in zip(solids, columns, strict=True):
        i, j = np.arange(begin[0], end[0] + 1), np.arange(begin[1], end[1] + 1)
        spans = solid.spans((i + 0.5) * spacing, (j + 0.5) * spacing, spacing)
        at, across = np.nonzero(spans.inside)
        column = (i[at] - first[0] + pad) * shape[1] + (j[across] - first[1] + pad)
        found.append((column, spans.low[at, across], spans.high[at, across], spans.steep[at, across]))
    if not found:
        return np.zeros(0, np.intp), np.zeros(0), np.zeros(0), np.zeros(0, bool)
    parts = [*zip(*found, strict=True)]
    low, high = np.concatenate(parts[1]), np.concatenate(parts[2])
    heights = corners[:, :, 2][np.isfinite(corners[:, :, 2])]
    bounds = heights.min(initial=0.0) - 1.0, heights.max(initial=0.0) + 1.0  # for what has none
    return np.concatenate(parts[0]), np.clip(low, *bounds), np.clip(high, *bounds), np.concatenate(parts[3])


def _blocked(
    gaps: _Gaps, places: NDArray[np.bool_], agent: Agent, spacing: float, shape: tuple[int, int]
) -> NDArray[np.bool_]:
    """Which gaps are too close to an obstacle or a ledge for the agent's radius."""
    index = gaps.index(shape[0] * shape[1])
    walls, ledges = _obstacles(gaps, places, agent, index, shape)
    blocked = np.zeros(len(gaps.column) + 1, bool)  # the last one is that of columns without a gap
    floor = np.append(gaps.floor, np.inf)
    reach = math.hypot(agent.radius, spacing / math.sqrt(2.0))  # so that there is room between free places, too
    most = math.ceil(reach / spacing + 0.5)
    # how far other floors can be from that beside an obstacle and still meet it: they rise by 45 degrees at most
    windows = (walls, agent.step_height + agent.radius), (ledges, agent.step_height)
    for i in range(-most, most + 1):
        for j in range(-most, most + 1):
            if math.hypot(max(abs(i) - 0.5, 0.0), max(abs(j) - 0.5, 0.0)) * spacing >= reach:
                continue
            for (column, height), window in windows:
                for layer in index:
                    near = layer[column + i * shape[1] + j]
                    blocked[near[np.abs(floor[near] - height) <= window]] = True
    return blocked[:-1]


def _obstacles(
    gaps: _Gaps, places: NDArray[np.bool_], agent: Agent, index: list[Ints], shape: tuple[int, int]
) -> tuple[tuple[Ints, Array], tuple[Ints, Array]]:
    """Columns beside places that cannot be stepped to, and heights of those places: solid ones, and ledges."""
    here = np.flatnonzero(places)
    column, height, ceiling, steep = gaps.column[here], gaps.floor[here], gaps.ceiling[here], gaps.steep[here]
    walls: list[Array] = []
    ledges: list[Array] = []
    for i, j in _NEIGHBOURS:
        there = column + i * shape[1] + j
        connected, open_ = np.zeros(len(here), bool), np.zeros(len(here), bool)
        for layer in index:
            gap = layer[there]
            floor, top = gaps.floor[gap], gaps.ceiling[gap]
            step = np.abs(floor - height) <= agent.step_height
            room = np.minimum(top, ceiling) - np.maximum(floor, height) >= agent.height
            connected |= (gap >= 0) & step & room & ~(steep & gaps.steep[gap])
            open_ |= (gap >= 0) & (floor <= height + agent.step_height) & (top >= height + agent.height)
        for group, chosen in ((walls, ~connected & ~open_), (ledges, ~connected & open_)):
            group.append(np.stack([there[chosen], height[chosen]], axis=1, dtype=np.float64))
    return _distinct(walls), _distinct(ledges)


def _distinct(groups: list[Array]) -> tuple[Ints, Array]:
    """Columns and heights, those of nearly the same height once."""
    rounded = np.round(np.concatenate(groups) / [1.0, _LEVELS_CLOSE]).astype(np.int64)
    low = rounded[:, 1].min(initial=0)
    key = np.unique(rounded[:, 0] * (1 << 24) + rounded[:, 1] - low)
    return key >> 24, ((key & ((1 << 24) - 1)) + low) * _LEVELS_CLOSE
