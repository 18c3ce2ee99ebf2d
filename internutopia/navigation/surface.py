"""Surface: where an agent can stand, in cells of a map, and which of these are free of things.

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
        heights: `(k,)` of the floor next to each [m].
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
    """Find what is next to the places of an agent and cannot be stepped to: solid parts of columns, and ledges."""
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
    # how far other floors can be from that next to an obstacle and still meet it: they rise by 45 degrees at most
    windows = np.repeat([agent.step_height + agent.radius, agent.step_height], [len(wall), len(ledge)])
    return Obstacles(columns, low, high, np.append(wall_height, ledge_height), windows)


def _filled(
    solids: Sequence[Solid], fillings: Fillings, column: Ints, height: Array, agent: Agent, grid: Grid
) -> tuple[Array, Array]:
    """Return corners `(n, 2)` of the part of each column that collides with an agent at a height next to it."""
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
            f'there is no ground: no level surface with {agent.height:.3g} m of room above it; '
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


_TOUCHING = 1e-9  # m
_TURN = math.radians(15)  # between two corners of a path around an obstacle
_ROUNDING = 6  # decimals of a grid coordinate: what is on a line of the grid needs no room next to it


class FreeSpace:
    """The free places of a surface.

    Args:
        surface: all places.
        agent: the agent that stands there.

    Attributes:
        columns: `(n, 2)` column of each free place.
        points: `(n, 3)` its middle, on the floor [m].
        heights: `(n,)` of the floor [m].
        clearance: how far they are from obstacles at least [m], which is a little more than the agent's radius.
    """

    def __init__(self, surface: Surface, agent: Agent):
        self._agent = agent
        self._spacing = surface.spacing
        self._obstacles = surface.obstacles
        self.clearance = clearance(agent, surface.spacing)
        self.columns, self.points = surface.columns[surface.free], surface.points[surface.free]
        self.heights = self.points[:, 2]
        self._first = surface.columns.min(axis=0) - 1
        self._shape = surface.columns.max(axis=0) + 2 - self._first
        i, j = (self.columns - self._first).T
        flat = i * self._shape[1] + j
        order = np.lexsort((self.heights, flat))
        starts = np.flatnonzero(np.diff(flat[order], prepend=-1))
        layer = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        self._index = np.full((layer.max(initial=0) + 1, int(self._shape.prod())), -1)
        self._index[layer, flat[order]] = order
        self._heights = np.append(self.heights, np.nan)  # the last one is that of columns without a place

    def find(self, columns: Ints, low: Array, high: Array) -> Ints:
        """Return the highest free place `(n,)` in each column `(n, 2)` between two heights `(n,)` [m]; -1 for none."""
        at = np.clip(columns - self._first, 0, self._shape - 1)  # the outermost columns have none
        flat = at[:, 0] * self._shape[1] + at[:, 1]
        found = np.full(len(flat), -1)
        for layer in self._index:  # from below
            place = layer[flat]
            height = self._heights[place]
            found = np.where((height >= low) & (height <= high), place, found)
        return found

    def neighbours(self) -> dict[tuple[int, int], Ints]:
        """Return by direction (columns along x and y) the place `(n + 1,)` next to each; n for none, and for n."""
        count, step = len(self.heights), self._agent.step_height
        found = {}
        for i, j in itertools.product((-1, 0, 1), repeat=2):
            there = self.find(self.columns + np.array([i, j]), self.heights - step, self.heights + step)
            found[i, j] = np.append(np.where(there < 0, count, there), count)
        return found

    def is_free(self, points: Array) -> NDArray[np.bool_]:
        """Return whether the agent has room `(n,)` with its axis through points `(n, 3)` [m] within its body."""
        z = points[:, 2]
        return self._has_room(points, z - self._agent.height, z + self._agent.step_height, self._agent.radius)

    def sees(self, starts: Array, ends: Array) -> NDArray[np.bool_]:
        """Return whether the agent can walk straight from points `(n, 3)` on the floor to others, on level ground.

        Level is what deviates from the straight line by no more than a step.
        """
        starts, ends = np.broadcast_arrays(starts, ends)
        way, apart = ends - starts, 0.5 * self._spacing
        count = np.ceil(np.abs(way[:, :2]).max(axis=1) / apart).astype(int) + 2
        line = np.repeat(np.arange(len(ends)), count)
        number = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
        points = starts[line] + way[line] * (number / (count - 1)[line])[:, None]
        slack = self._agent.step_height + self._spacing
        between = math.hypot(self._agent.radius, apart / math.sqrt(2.0))  # so that there is room between points, too
        free = self._has_room(points, points[:, 2] - slack, points[:, 2] + slack, between)
        steep = np.abs(way[:, 2]) > slack + np.linalg.norm(way[:, :2], axis=1)
        return ~steep & (np.bincount(line, ~free, len(ends)) == 0)

    def pulled(self, points: Array) -> tuple[Array, Array]:
        """Move free places `(n, 3)` towards the nearest obstacle until they are at the `clearance`.

        Returns:
            where they are then `(n, 2)`, and the point of the obstacle `(n, 2)`, NaN where there is none near.
        """
        obstacle, distance = self._obstacles.nearest(points, self.clearance + 2.0 * self._spacing)
        part = np.minimum(self.clearance / distance, 1.0)[:, None]  # 0: nothing is near
        near = np.isfinite(distance)[:, None]
        moved = obstacle + part * (points[:, :2] - obstacle)
        return np.where(near, moved, points[:, :2]), np.where(near, obstacle, np.nan)

    def around(self, start: Array, end: Array) -> Array:
        """Return points `(m, 3)` around the obstacle nearest to the line between two points `(3,)`, at its edge [m].

        Lines between them are tangents to circles about the obstacle's nearest point.
        """
        middle = (start + end)[None] / 2.0
        centre = self._obstacles.nearest(middle, self.clearance)[0][0]
        first, last = start[:2] - centre, end[:2] - centre
        turn = math.atan2(first[0] * last[1] - first[1] * last[0], first @ last)
        count = math.ceil(abs(turn) / _TURN)
        part = (np.arange(count) + 0.5) / max(count, 1)
        angle = math.atan2(first[1], first[0]) + part * turn
        radius = (1.0 - part) * np.linalg.norm(first) + part * np.linalg.norm(last)
        radius = radius / math.cos(0.5 * turn / max(count, 1))
        heights = (1.0 - part) * start[2] + part * end[2]
        return np.column_stack([centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle), heights])

    def _has_room(self, points: Array, low: Array, high: Array, radius: float) -> NDArray[np.bool_]:
        """Return whether points `(n, 3)` have floor between two heights `(n,)`, and obstacles are a `radius` away."""
        at = np.round(points[:, :2] / self._spacing - 0.5, _ROUNDING)
        i0, j0 = np.floor(at).astype(int).T
        i1, j1 = np.ceil(at).astype(int).T
        around = ((i0, j0), (i1, j0), (i0, j1), (i1, j1))
        places = np.stack([self.find(np.stack(corner, axis=1), low, high) for corner in around])
        room: NDArray[np.bool_] = np.asarray((places >= 0).all(axis=0))
        edge = np.flatnonzero(~room & (places >= 0).any(axis=0))  # of the free places: measured exactly
        floor = np.column_stack([points[edge, :2], self.heights[places[:, edge].max(axis=0)]])
        room[edge] = self._obstacles.nearest(floor, radius)[1] >= radius - _TOUCHING
        return room
