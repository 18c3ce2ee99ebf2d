"""Map grids: several maps as arrays, looked up for many robots at once, by functions that numpy and torch share.

    grids = MapGrids([apartment, rooms])
    free = grids.free(numbers, positions)  # numbers (n,): which map; positions (n, ..., 3)

Lookups take one gather for each floor that any of the maps has above another, whatever the number of robots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from internutopia.navigation.map import NavigationMap
from internutopia.util.arrays import ArrayMaker, HostArrays
from internutopia.util.rotations import yaw_of, yaw_rotate

_CORNERS = tuple((i, j) for i in (0, 1) for j in (0, 1))  # of a square of cells


class MapGrids:
    """The cells of k maps. All arrays are of the kind that `arrays` makes; points are in the env frame [m].

    A point belongs to the floor of the agent that has it within its body, as in `NavigationMap`.

    Args:
        maps: the maps.
        arrays: makes arrays; None: those of numpy.
    """

    def __init__(self, maps: Sequence[NavigationMap], arrays: ArrayMaker | None = None):
        self.arrays = arrays = HostArrays() if arrays is None else arrays
        self._xp: Any = arrays.xp
        grids = [_grid(each) for each in maps]
        layers = max(len(cells) for cells, *_ in grids)
        sizes = [int(np.prod(shape)) for *_, shape in grids]
        cells, away = np.full((layers, sum(sizes)), -1), np.full((layers, sum(sizes)), np.inf)
        heights = np.full((layers, sum(sizes)), np.nan)
        starts = np.cumsum([0, *sizes[:-1]])
        for each, (near, far, _, _), start, size in zip(maps, grids, starts, sizes, strict=True):
            columns = slice(start, start + size)
            cells[: len(near), columns], away[: len(near), columns] = near, far
            heights[: len(near), columns] = np.append(each.points[:, 2], np.nan)[near]
        self._cells, self._away = arrays.asarray(cells, 'int64'), arrays.asarray(away, 'float32')
        self._heights = arrays.asarray(heights, 'float32')
        self._count = max(each.cell_count for each in maps)
        self._start = arrays.asarray(starts, 'int64')
        firsts = [first for _, _, first, _ in grids]
        self._origin = arrays.asarray([e.cell * (first + 0.25) for e, first in zip(maps, firsts, strict=True)])
        self._shape = arrays.asarray([shape for *_, shape in grids], 'int64')
        self._cell = arrays.asarray([each.cell for each in maps])
        agents = [each.agent for each in maps]
        self._low = arrays.asarray([-agent.height for agent in agents], 'float32')
        self._high = arrays.asarray([agent.step_height for agent in agents], 'float32')

    def free(self, numbers: Any, positions: Any) -> Any:
        """Return whether the agent has room with its axis through points, bool `(n, ...)`, to the nearest cell.

        Args:
            numbers: `(n,)` of the maps.
            positions: `(n, ..., 3)` of points.
        """
        columns = self._columns(numbers, self._xp.round(self._places(numbers, positions)))
        free = self._xp.zeros_like(columns, dtype=bool)
        for away, heights in zip(self._away, self._heights, strict=True):
            free = free | ((away[columns] == 0.0) & self._on_floor(numbers, heights[columns], positions[..., 2]))
        return free

    def crop(self, numbers: Any, positions: Any, orientations: Any, size: float, resolution: float) -> Any:
        """Return egocentric occupancy around robots, float32 `(n, k, k)`: 1 where the agent's axis cannot be, else 0.

        The robot is in the middle and faces up: rows are from the front to the back, columns from its left to its
        right, whatever its roll and pitch.

        Args:
            numbers: `(n,)` of the maps.
            positions: `(n, 3)` of the robots.
            orientations: `(n, 4)` (w, x, y, z).
            size: width and depth of what is shown [m], k times the resolution.
            resolution: width of a pixel [m].
        """
        xp, count = self._xp, round(size / resolution)
        ahead = self.arrays.constant(tuple(((0.5 * (count - 1) - np.arange(count)) * resolution).tolist()))
        grid = xp.stack(xp.meshgrid(ahead, ahead, indexing='ij'), axis=-1)  # forward, left
        yaw = xp.astype(yaw_of(orientations), xp.float32)[:, None, None]
        places = positions[:, None, None, :2] + yaw_rotate(yaw, grid)
        z = xp.zeros_like(places[..., :1]) + positions[:, None, None, 2:]
        return xp.astype(~self.free(numbers, xp.concat([places, z], axis=-1)), xp.float32)

    def table(self, fields: Sequence[NDArray[np.floating[Any]]]) -> Any:
        """Return rows for `distances`, float32 `(fields, cells)` [m].

        `fields`: the `cell_distances` of distance fields of any of the maps.
        """
        rows = np.full((len(fields), self._count + 1), np.inf, np.float32)  # the last one is that of no cell
        for row, field in zip(rows[:, : self._count], fields, strict=True):
            row[: len(field)] = field[: self._count]
        return self.arrays.asarray(rows)

    def distances(self, numbers: Any, positions: Any, table: Any, rows: Any) -> Any:
        """Return geodesic distances of points to the goals of distance fields, float32 `(n,)` [m].

        Between the four cells around a point they are interpolated; within the map's `snap_distance` of free space
        they count from its edge on. Farther off, and where no way leads, they are infinite.

        Args:
            numbers: `(n,)` of the maps.
            positions: `(n, 3)` of the points.
            table: as `table` made it.
            rows: `(n,)` row of the table for each point.
        """
        xp = self._xp
        places = self._places(numbers, positions)
        low = xp.floor(places)
        part = places - low
        total, weights = 0.0, 0.0
        for i, j in _CORNERS:
            corner = self.arrays.constant((float(i), float(j)))
            columns = self._columns(numbers, low + corner)
            found = xp.zeros_like(positions[:, 0]) + xp.inf
            for cells, away, heights in zip(self._cells, self._away, self._heights, strict=True):
                here = self._on_floor(numbers, heights[columns], positions[:, 2])
                value = table[rows, cells[columns]] + away[columns]
                found = xp.where(here & (value < found), value, found)
            weight = (1e-6 + xp.abs(1.0 - corner - part)).prod(axis=-1)  # a corner alone counts, however far
            there = xp.isfinite(found)
            total = total + xp.where(there, weight * found, 0.0)
            weights = weights + xp.where(there, weight, 0.0)
        known = weights > 0.0
        return xp.astype(xp.where(known, total / xp.where(known, weights, 1.0), xp.inf), xp.float32)

    def _places(self, numbers: Any, positions: Any) -> Any:
        """Return points `(n, ..., 2)` in cells of the grids, middles of cells being whole numbers."""
        wide = (len(numbers),) + (1,) * (positions.ndim - 2)
        origin, cell = self._origin[numbers], self._cell[numbers]
        return (positions[..., :2] - origin.reshape(*wide, 2)) / cell.reshape(*wide, 1)

    def _columns(self, numbers: Any, places: Any) -> Any:
        """Return numbers `(n, ...)` of the columns of cells at whole places; the outermost ones are empty."""
        wide = (len(numbers),) + (1,) * (places.ndim - 2)
        shape = self._shape[numbers].reshape(*wide, 2)
        index = self._xp.astype(places, self._xp.int64).clip(min=0)
        index = self._xp.minimum(index, shape - 1)
        return self._start[numbers].reshape(wide) + index[..., 0] * shape[..., 1] + index[..., 1]

    def _on_floor(self, numbers: Any, heights: Any, z: Any) -> Any:
        """Return whether an agent at these heights `(n, ...)` [m] has points at heights `z` within its body."""
        wide = (len(numbers),) + (1,) * (z.ndim - 1)
        above = heights - z
        return (above >= self._low[numbers].reshape(wide)) & (above <= self._high[numbers].reshape(wide))


def _grid(navigation_map: NavigationMap) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp], Any]:
    """Return the columns of a map's cells: nearest cell by layer `(layers, columns)`, -1 for none; its distance [m].

    And the number of the first column, and how many there are along x and y. An empty border is around them.
    """
    cell, points = navigation_map.cell, navigation_map.points[: navigation_map.cell_count]
    places = np.round(points[:, :2] / cell - 0.25).astype(int)  # cells are two columns wide, their middle in the first
    pad = math.ceil(navigation_map.snap_distance / cell) + 1
    first = places.min(axis=0) - pad
    shape = tuple((places.max(axis=0) + pad + 1 - first).tolist())
    column: Any = np.ravel_multi_index(tuple((places - first).T), shape)
    order = np.lexsort((points[:, 2], column))
    begins = np.flatnonzero(np.diff(column[order], prepend=-1))
    layer = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    cells = np.full((int(layer.max()) + 1, int(np.prod(shape))), -1)
    cells[layer, column[order]] = order
    away = np.zeros(cells.shape)
    grids: Any = cells.reshape(-1, *shape)
    for number, row in enumerate(grids):
        found: Any = distance_transform_edt(row < 0, sampling=cell, return_indices=True)
        distance, (i, j) = found
        near = np.where(distance <= navigation_map.snap_distance, row[i, j], -1)
        cells[number], away[number] = near.ravel(), np.where(near < 0, np.inf, distance).ravel()
    return cells, away, first, shape
