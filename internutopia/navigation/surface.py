"""Standing surface: places where an agent can stand in a scene, with any number of floors, and obstacles beside them.

It is found as navigation meshes are made (Mononen's Recast), but exactly in radius: solids are cut into columns; what
is above the solid part of a column, and high enough, can be stood on; places next to each other are connected if the
step between them is low enough; where there is no connection there is an obstacle (or a ledge), and the axis of the
agent keeps away from it by its radius. Where four neighbouring places of the grid are free, the agent fits at every
point between them.

Obstacles are rectangles seen from above. Each is what a solid fills of one column of the grid, so that a wall is a row
of them, exact where its sides are along the grid's axes and never smaller than it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from internutopia.navigation.agent import Agent
from internutopia.navigation.columns import Fillings, Gaps, Grid, Solid

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

_CANDIDATES = 24  # obstacles that are tested around a point: those of other floors may be nearer seen from above
_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
_LEVELS_CLOSE = 0.01  # m: obstacles of nearly the same level count once
_LEVEL_WEIGHT = 0.3  # what a difference in height counts as, where the candidates are searched
EMPTY_EXTENT = 5.0
"""Extent on a map of a scene of nothing but a ground, from its origin [m]."""


@dataclass(frozen=True)
class Obstacles:
    """Rectangles along the axes, with the floors that they are in the way of.

    Attributes:
        columns: `(k, 2)` the column that each is in.
        low, high: `(k, 2)` lowest and highest corners [m].
        heights: `(k,)` of the floor beside each [m].
        windows: `(k,)` how far above or below that a floor can be that each is in the way of [m].
    """

    columns: Ints
    low: Array
    high: Array
    heights: Array
    windows: Array

    def nearest(self, points: Array, within: float) -> tuple[Array, Array]:
        """Return the point `(n, 2)` of any obstacle nearest to places `(n, 3)` on a floor; its distance `(n,)` [m].

        Beyond `within` [m] it may not be found: then the distance is infinite.
        """
        if not len(self.low) or not len(points):
            return np.zeros((len(points), 2)), np.full(len(points), np.inf)
        size = float(np.linalg.norm(self.high - self.low, axis=1).max())
        bound = within + size + _LEVEL_WEIGHT * float(self.windows.max())
        _, found = self._tree.query(points * [1.0, 1.0, _LEVEL_WEIGHT], k=_CANDIDATES, distance_upper_bound=bound)
        there = found < len(self.low)
        found = np.where(there, found, 0)
        there &= np.abs(self.heights[found] - points[:, 2:]) <= self.windows[found]
        near = np.clip(points[:, None, :2], self.low[found], self.high[found])
        distance = np.where(there, np.linalg.norm(near - points[:, None, :2], axis=-1), np.inf)
        best, rows = distance.argmin(axis=1), np.arange(len(points))
        return near[rows, best], distance[rows, best]

    @cached_property
    def _tree(self) -> KDTree:
        middle = (self.low + self.high) / 2.0
        return KDTree(np.column_stack([middle, _LEVEL_WEIGHT * self.heights]))


def find_obstacles(solids: Sequence[Solid], fillings: Fillings, gaps: Gaps, agent: Agent, grid: Grid) -> Obstacles:
    """Find what is beside the places of an agent and cannot be stepped to: solid parts of columns, and ledges."""
    index = gaps.index(grid.shape[0] * grid.shape[1])
    here = np.flatnonzero(gaps.standing(agent))
    column, height, ceiling, steep = gaps.column[here], gaps.floor[here], gaps.ceiling[here], gaps.steep[here]
    walls: list[Array] = []
    ledges: list[Array] = []
    for i, j in _NEIGHBOURS:
        there = column + i * grid.shape[1] + j
        connected, open_ = np.zeros(len(here), bool), np.zeros(len(here), bool)
        near = np.arange(len(here))
        for layer in index:
            gap = layer[there[near]]
            near, gap = near[gap >= 0], gap[gap >= 0]  # few, high up
            floor, top, low, high = gaps.floor[gap], gaps.ceiling[gap], height[near], ceiling[near]
            step = np.abs(floor - low) <= agent.step_height
            room = np.minimum(top, high) - np.maximum(floor, low) >= agent.height
            connected[near] |= step & room & ~(steep[near] & gaps.steep[gap])
            open_[near] |= (floor <= low + agent.step_height) & (top >= low + agent.height)
        for group, chosen in ((walls, ~connected & ~open_), (ledges, ~connected & open_)):
            group.append(np.stack([there[chosen], height[chosen]], axis=1, dtype=np.float64))
    (wall, wall_height), (ledge, ledge_height) = _distinct(walls), _distinct(ledges)
    columns = grid.columns(np.append(wall, ledge))
    low = np.asarray(columns * grid.spacing, np.float64)
    high = low + grid.spacing
    low[: len(wall)], high[: len(wall)] = _filled(solids, fillings, wall, wall_height, agent, grid)
    # how far other floors can be from that beside an obstacle and still meet it: they rise by 45 degrees at most
    windows = np.repeat([agent.step_height + agent.radius, agent.step_height], [len(wall), len(ledge)])
    return Obstacles(columns, low, high, np.append(wall_height, ledge_height), windows)


def _filled(
    solids: Sequence[Solid], fillings: Fillings, column: Ints, height: Array, agent: Agent, grid: Grid
) -> tuple[Array, Array]:
    """Return corners `(n, 2)` of the part of each column that collides with an agent at a height beside it."""
    begin, end = (np.searchsorted(fillings.column, column, side) for side in ('left', 'right'))
    count = end - begin
    row = np.repeat(np.arange(len(column)), count)
    filling = np.arange(len(row)) - np.repeat(np.cumsum(count) - count - begin, count)
    above = fillings.high[filling] > height[row] + agent.step_height
    met = above & (fillings.low[filling] < height[row] + agent.height)
    row, solid = row[met], fillings.solid[filling[met]]
    boxes = np.array([[each.low[:2], each.high[:2]] for each in solids])
    first = grid.columns(column) * grid.spacing
    low, high = np.full((len(column), 2), np.inf), np.full((len(column), 2), -np.inf)
    np.minimum.at(low, row, boxes[solid, 0])
    np.maximum.at(high, row, boxes[solid, 1])
    unknown = np.isinf(low) & np.isinf(high) & (low > high)  # such as a steep one: all of the column
    low, high = np.where(unknown, first, low), np.where(unknown, first + grid.spacing, high)
    return np.clip(low, first, first + grid.spacing), np.clip(high, first, first + grid.spacing)


def _distinct(groups: list[Array]) -> tuple[Ints, Array]:
    """Return columns and heights, those of nearly the same height once."""
    rounded = np.round(np.concatenate(groups) / [1.0, _LEVELS_CLOSE]).astype(np.int64)
    low = rounded[:, 1].min(initial=0)
    key = np.unique(rounded[:, 0] * (1 << 24) + rounded[:, 1] - low)
    return key >> 24, ((key & ((1 << 24) - 1)) + low) * _LEVELS_CLOSE


@dataclass(frozen=True)
class Surface:
    """Places that an agent can stand on, as columns of a grid with heights.

    Attributes:
        spacing: of the grid [m]; column `(i, j)` is the square from `(i, j) * spacing` to `(i + 1, j + 1) * spacing`.
        columns: `(n, 2)` column of each place.
        heights: `(n,)` where its floor is [m].
        free: `(n,)` whether the agent has room there, upright and with its whole radius.
        lowest: `(n,)` whether there is no other gap below it that the agent would fit in.
        obstacles: what it keeps away from.
    """

    spacing: float
    columns: Ints
    heights: Array
    free: NDArray[np.bool_]
    lowest: NDArray[np.bool_]
    obstacles: Obstacles

    @property
    def points(self) -> Array:
        """Places `(n, 3)`, middles of their columns, on the floor [m]."""
        return np.column_stack([(self.columns + 0.5) * self.spacing, self.heights]).astype(np.float64)


def find_surface(
    solids: Sequence[Solid], agent: Agent, spacing: float, bounds: tuple[Sequence[float], Sequence[float]] | None = None
) -> Surface:
    """Find the places where an agent can stand among solids.

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
    pad = int(np.ceil(agent.radius / spacing)) + 2
    grid = Grid(spacing, np.floor(low / spacing).astype(int), np.floor(high / spacing).astype(int), pad)
    fillings = Fillings.of(solids, grid)
    gaps = Gaps.above(fillings, agent)
    places = gaps.standing(agent)
    if not places.any():
        raise ValueError(
            f'there is nothing to stand on: no level surface with {agent.height:.3g} m of room above it; '
            'a scene needs a floor that collides'
        )
    obstacles = find_obstacles(solids, fillings, gaps, agent, grid)
    blocked = _blocked(gaps, obstacles, agent, grid)
    columns = grid.columns(gaps.column[places])
    return Surface(spacing, columns, gaps.floor[places], ~blocked[places], gaps.layer[places] == 0, obstacles)


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


def clearance(agent: Agent, spacing: float) -> float:
    """Return the least distance of free places from obstacles [m] that also leaves room between them."""
    return math.hypot(agent.radius, spacing / math.sqrt(2.0))


def _blocked(gaps: Gaps, obstacles: Obstacles, agent: Agent, grid: Grid) -> NDArray[np.bool_]:
    """Return which gaps are too close to an obstacle or a ledge for the agent's radius."""
    spacing, shape, index = grid.spacing, grid.shape, gaps.index(grid.shape[0] * grid.shape[1])
    reach = clearance(agent, spacing)
    most = math.ceil(reach / spacing + 0.5)
    blocked, floor = np.zeros(len(gaps.column), bool), gaps.floor
    column = grid.number(*obstacles.columns.T)
    middle = (obstacles.columns + 0.5) * spacing
    offsets = range(-most, most + 1)
    x, y = (
        [np.maximum(np.maximum(low - k * spacing, k * spacing - high), 0.0) ** 2 for k in offsets]
        for low, high in zip((obstacles.low - middle).T, (obstacles.high - middle).T, strict=True)
    )
    for (i, x_squared), (j, y_squared) in itertools.product(zip(offsets, x, strict=True), zip(offsets, y, strict=True)):
        if math.hypot(max(abs(i) - 0.5, 0.0), max(abs(j) - 0.5, 0.0)) * spacing >= reach:
            continue
        close = np.flatnonzero(x_squared + y_squared < reach * reach)
        there, height, window = column[close] + i * shape[1] + j, obstacles.heights[close], obstacles.windows[close]
        for layer in index:
            gap = layer[there]
            few = gap >= 0  # high up
            gap, there, height, window = gap[few], there[few], height[few], window[few]
            blocked[gap[np.abs(floor[gap] - height) <= window]] = True
    return blocked
