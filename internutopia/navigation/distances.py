"""Distance field: geodesic distances from everywhere on a map to the nearest of some goals, and shortest paths."""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from internutopia.navigation.agent import Agent
from internutopia.navigation.points import as_points

Array = NDArray[np.float64]

_SPARE = 256  # moves: of 32 goals, or more
_LOCK = threading.Lock()  # one for all, so that maps can be copied
Ints = NDArray[np.intp]
_STRAIGHT = 0.995  # of the length of a way over moves in 80 directions, that of the straight one is at least so much
_CLOSE = 4.0  # cells: a way over the nearest ones is no longer where the goal is in the same cell, on the same floor


class Search:
    """Dijkstra's algorithm, from one more node behind those of a graph.

    The arrays of the graph have room behind them for the moves of that node: copying them takes as long as the search.

    Args:
        lengths: `(n, n)` sparse, of the moves between the nodes [m].

    Attributes:
        lengths: the same, in the arrays that are searched.
    """

    def __init__(self, lengths: csr_array):
        self._allocate(lengths, _SPARE)

    def run(self, nodes: NDArray[np.intp], lengths: Array) -> tuple[Array, NDArray[np.int32]]:
        """Return the lengths of the shortest ways from a place with moves to some nodes `(k,)` of lengths `(k,)` [m].

        Returns:
            those to each node `(n,)` [m], infinite where no way leads; and the node before each on its way `(n,)`: n
            for the place itself, negative where no way leads.
        """
        count, known = len(self.lengths.indptr) - 1, self.lengths.nnz
        total = known + len(nodes)
        with _LOCK:
            if total > len(self._data):
                self._allocate(self.lengths, 2 * len(nodes))
            self._data[known:total], self._indices[known:total] = lengths, nodes
            first = np.append(self.lengths.indptr, np.int32(total))
            graph = csr_array((self._data[:total], self._indices[:total], first), shape=(count + 1, count + 1))
            distances, before = dijkstra(graph, indices=count, return_predecessors=True)
        return distances[:-1], before[:-1]

    def _allocate(self, lengths: csr_array, spare: int) -> None:
        known = lengths.nnz
        self._data, self._indices = (np.empty(known + spare, each.dtype) for each in (lengths.data, lengths.indices))
        self._data[:known], self._indices[:known] = lengths.data, lengths.indices
        self.lengths = csr_array((self._data[:known], self._indices[:known], lengths.indptr), shape=lengths.shape)


class CellMap(Protocol):
    """Part of a map that a distance field needs, see `NavigationMap`."""

    agent: Agent
    name: str
    cell: float
    points: Array
    is_corner: NDArray[np.bool_]
    search: Search

    @property
    def snap_distance(self) -> float: ...  # noqa: D102
    def near(self, points: Array) -> tuple[Ints, Array]: ...  # noqa: D102
    def nearest(self, points: ArrayLike) -> tuple[Array, Array]: ...  # noqa: D102
    def sees(self, start: ArrayLike, ends: ArrayLike) -> NDArray[np.bool_]: ...  # noqa: D102
    def way(self, nodes: Ints) -> Array: ...  # noqa: D102


class DistanceField:
    """Lengths of the shortest ways of an agent's axis to the nearest of some goals.

    Dijkstra's algorithm runs once, when the field is made; then distances are looked up. They are at most 0.5 % and a
    cell longer than they are between the obstacles themselves. Steps and slopes count with what they rise.

    Args:
        cells: the map.
        goals: `(k, 3)` [m]. Those without free space near them do not count, as long as there are others.

    Attributes:
        goals: `(k, 3)` the places on the floor that are gone to, for goals that count; see `NavigationMap.nearest`.
        cell_distances: `(n,)` those of the map's points [m], infinite where no way leads to a goal.

    Raises:
        ValueError: no goal has free space within the map's `snap_distance`.
    """

    def __init__(self, cells: CellMap, goals: Array):
        self._map = cells
        self.goals = _snapped(cells, goals, 'goal')
        near, far = cells.near(self.goals)
        goal, nth = np.nonzero(far <= np.maximum(far.min(axis=1), cells.cell)[:, None])
        order = np.lexsort((far[goal, nth], near[goal, nth]))
        node, first = np.unique(near[goal, nth][order], return_index=True)
        self._goal_of = dict(zip(node.tolist(), goal[order][first].tolist(), strict=True))
        distances, self._before = cells.search.run(node, far[goal, nth][order][first])
        count = len(cells.points)
        first = np.flatnonzero(self._before == count)  # cells beside goals
        parents = self._before.astype(np.intp)
        parents[first] = count + np.array([self._goal_of[cell] for cell in first.tolist()])
        self.cell_distances = self._straightened(distances, parents)

    def distances(self, points: ArrayLike) -> Array:
        """Return the distances `(n,)` [m] of points `(n, 3)`; infinite where no way leads to a goal.

        From a point that is not free but has free space within the map's `snap_distance` (a robot that leans against a
        wall) it is gone there first. Farther off it is infinite.

        Raises:
            ValueError: a point is not finite.
        """
        points = as_points(points)
        cells, away = self._map.near(points)
        away = np.where(away <= self._map.snap_distance, away, np.inf)
        found = (away + self.cell_distances[cells]).min(axis=1)
        here = np.isfinite(found)
        for goal in self.goals:  # cells are no measure for what is closer
            direct = np.linalg.norm(points[:, :2] - goal[:2], axis=1)
            close = here & (direct <= self._map.cell) & (found < _CLOSE * self._map.cell)
            found = np.where(close, np.minimum(found, direct), found)
        return found

    def path(self, start: ArrayLike) -> tuple[Array, float]:
        """Return the shortest path from a point `(3,)` to the nearest goal.

        Returns:
            its corners `(m, 3)` on the floor [m], from the place of the start to that of the goal; straight between
            them, with room for the agent everywhere. And its length [m]. No corners and an infinite length where no way
            leads to a goal.

        Raises:
            ValueError: there is no free space within the map's `snap_distance` of the start.
        """
        begin = _snapped(self._map, as_points(start, 'start'), 'start')
        cells, away = self._map.near(begin)
        total = away[0] + self.cell_distances[cells[0]]
        if not np.isfinite(total).any():
            return np.zeros((0, 3)), np.inf
        cell = int(cells[0, total.argmin()])
        chain = [cell]
        while (cell := int(self._before[cell])) < len(self._map.points):
            chain.append(cell)
        goal = self.goals[self._goal_of[chain[-1]]]
        points = self._pulled(np.vstack([begin, self._map.way(np.array(chain)), goal]))
        points = self._pulled(points[::-1])[::-1]
        return points, float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())

    def _straightened(self, distances: Array, parents: Ints) -> Array:
        """Return the distances `(n,)` with straight lines between corners, in place of the moves that lead there.

        `parents` `(n,)` are the nodes before them on the way to a goal; goals are behind the n nodes.
        """
        count = len(distances)
        reached = np.flatnonzero(np.isfinite(distances))
        number = np.full(count + len(self.goals), -1)  # among those that are reached, goals behind them
        number[reached], number[count:] = np.arange(len(reached)), len(reached) + np.arange(len(self.goals))
        ends = len(reached) + np.arange(len(self.goals))
        last = np.append(number[parents[reached]], ends)
        turns = np.append(self._map.is_corner[reached], np.ones(len(ends), bool))
        while not turns[last].all():  # twice as far in each round
            last = np.where(turns[last], last, last[last])
        points = np.vstack([self._map.points[reached], self.goals])
        length = np.append(distances[reached], np.zeros(len(ends)))
        moved = length - length[last]
        gained = moved - np.maximum(np.linalg.norm(points - points[last], axis=1), _STRAIGHT * moved)
        while (last < len(reached)).any():
            gained, last = gained + gained[last], last[last]
        found = np.full(count, np.inf)
        found[reached] = (length - gained)[: len(reached)]
        return found

    def _pulled(self, points: Array) -> Array:
        """Return a path without the corners that can be gone past on a straight line."""
        kept = [0]
        while kept[-1] < len(points) - 1:
            now = kept[-1]
            seen = np.flatnonzero(self._map.sees(points[now], points[now + 2 :]))
            kept.append(now + 2 + int(seen[-1]) if len(seen) else now + 1)
        return points[kept]


def _snapped(cells: CellMap, points: Array, what: str) -> Array:
    """Return places of those points that have free space near them. ValueError if none has."""
    places, distance = cells.nearest(points)
    near = distance <= cells.snap_distance
    if near.any():
        return places[near]
    worst = int(distance.argmin())
    x, y, z = points[worst]
    away = distance[worst]
    rest = f'the nearest is {away:.3g} m away' if np.isfinite(away) else 'none is near on its floor'
    raise ValueError(
        f'{what} ({x:.3g}, {y:.3g}, {z:.3g}) of {cells.name}: no free place for an agent of radius '
        f'{cells.agent.radius:.3g} m within {cells.snap_distance:.3g} m; {rest}'
    )
