"""Free space: the places of a surface where an agent has room, looked up by point and along lines."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from internutopia.navigation.agent import Agent
from internutopia.navigation.surface import Surface, clearance

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

_TOUCHING = 1e-9  # m
_TURN = math.radians(15)  # between two corners of a path around an obstacle
_ROUNDING = 6  # decimals of a grid coordinate: what is on a line of the grid needs no room beside it


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
