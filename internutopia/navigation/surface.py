"""Standing surface: places where an agent can stand in a scene, on a fine grid, with any number of floors.

It is found as navigation meshes are made (Mononen's Recast), but exactly in radius: solids are cut into columns; what
is above the solid part of a column, and high enough, can be stood on; places next to each other are connected if the
step between them is low enough; where there is no connection there is an obstacle (or a ledge), and the axis of the
agent keeps away from it by its radius. Obstacles are never smaller than they are: where four neighbouring places of the
grid are free, the agent fits at every point between them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from internutopia.navigation.agent import Agent
from internutopia.navigation.columns import Fillings, Gaps, Grid
from internutopia.navigation.obstacles import Obstacles, find_obstacles
from internutopia.navigation.solids import Solid

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

EMPTY_EXTENT = 5.0
"""Extent on a map of a scene of nothing but a ground, from its origin [m]."""


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
