"""Navigation map: places where a robot can stand in a scene, with any number of floors, and distances between them.

It is made from the collision geometry of the scene.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from internutopia.navigation.agent import Agent, SceneFile, StartingScene, spec_of
from internutopia.navigation.columns import solids_of
from internutopia.navigation.graph import LEAST_TIME, Graph, MapFile, Search
from internutopia.navigation.points import as_points
from internutopia.navigation.surface import FreeSpace, Surface, find_surface

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

CELL = 0.05
"""Default width of a cell [m]."""

_NEAREST = 8  # cells that are tested around a point: those of several floors may be above each other
_STRAIGHT = 0.995  # of the length of a way over moves in 80 directions, that of the straight one is at least so much
_CLOSE = 4.0  # cells: a way over the nearest ones is no longer where the goal is in the same cell, on the same floor


class NavigationMap:
    """The cells of a scene that an agent can stand on with its axis, and the straight moves between them.

    All points are `(x, y, z)` [m] in the env frame. A point belongs to the floor of the agent that has it within its
    body: points on the floor do, and positions of robots. Maps are immutable.

    Args:
        surface: all places, on a grid twice as fine as the cells.
        agent: the agent that stands there.
        name: of the scene, for messages.
        graph: that of the surface, if it is known.

    Attributes:
        agent: as given.
        surface: as given.
        cell: width of a cell [m].
        points: `(n, 3)` the cells, on their floors [m]; behind them, places at corners, where paths turn.
        cell_count: how many of the points are cells.
        is_corner: `(n,)` whether paths may turn there.
        graph: `(n, n)` sparse, lengths of the moves between cells [m].
        search: of shortest ways on the graph.
        islands: `(n,)` number of the island of each cell: on one island there is a way from each cell to each other.
            They are numbered by the area that has no gap below it (so roofs come last), the largest first.
    """

    def __init__(self, surface: Surface, agent: Agent, name: str = 'the scene', graph: Graph | None = None):
        self.agent = agent
        self.surface = surface
        self.name = name
        self.cell = 2.0 * surface.spacing
        self._space = FreeSpace(surface, agent)
        graph = Graph.of(self._space) if graph is None else graph
        self.search = Search(graph.lengths)
        self._graph = replace(graph, lengths=self.search.lengths)
        places = self._graph.places
        if not len(places):
            raise ValueError(
                f'{name}: no room for an agent of radius {agent.radius:.3g} m and height {agent.height:.3g} m, '
                'all of the floor is too close to obstacles'
            )
        self.points, self.is_corner = self._graph.points, self._graph.is_corner
        self.cell_count = self._graph.cell_count
        self.graph = self.search.lengths
        self._tree = KDTree(self.points[:, :2])
        self.islands = self._find_islands(surface.lowest[surface.free][places])

    @classmethod
    def of_scene(
        cls,
        scene: SceneFile,
        agent: Agent,
        cell: float = CELL,
        *,
        movable: bool = True,
        bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> NavigationMap:
        """Make the map of a scene as it is when an episode starts, without its robots.

        What took long is kept on disk, see `internutopia.navigation.graph`.

        Args:
            scene: a file, found like `scene_asset_path`, or a task or scene spec, whose objects stand in the way, too.
            agent: the agent that stands there.
            cell: width of a cell [m].
            movable: whether what physics moves stands in the way.
            bounds: lowest and highest corner `(x, y)` of the map [m]; None: of all that is finite, or 5 m around the
                origin if nothing is.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is broken, has no floor that collides, or no room for the agent.
        """
        spec = spec_of(scene)
        file = MapFile.of(spec, agent, cell, movable, bounds)
        name = spec.asset or 'the scene'
        if (known := file.read()) is not None:
            surface, graph = known
            return cls(surface, agent, name, graph)
        start, begin = StartingScene.load(spec), time.thread_time()
        model, data = start.compiled.model, start.data
        found = cls.of_model(model, data, agent, cell, movable=movable, bounds=bounds, name=name)
        if time.thread_time() - begin >= LEAST_TIME:
            file.write(found.surface, found._graph)
        return found

    @classmethod
    def of_model(
        cls,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        agent: Agent,
        cell: float = CELL,
        *,
        movable: bool = True,
        bounds: tuple[Sequence[float], Sequence[float]] | None = None,
        name: str = 'the scene',
    ) -> NavigationMap:
        """Make the map of a compiled model in the poses of `data` (positions computed); see `of_scene`."""
        if not cell > 0:
            raise ValueError(f'cell must be a positive width in metres, got {cell}')
        chosen = (model.geom_contype | model.geom_conaffinity) > 0
        if not movable:
            chosen &= model.body_dofnum[model.body_weldid[model.geom_bodyid]] == 0
        solids = list(solids_of(model, data, np.flatnonzero(chosen).tolist()))
        try:
            surface = find_surface(solids, agent, cell / 2.0, bounds)
        except ValueError as error:
            raise ValueError(f'{name}: {error}') from None
        return cls(surface, agent, name)

    @property
    def snap_distance(self) -> float:
        """Largest distance from free space at which a point counts as at its edge [m]: robots are not round."""
        return self.agent.radius + 2.0 * self.cell

    def is_free(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Return whether the agent has room `(n,)` with its axis through points `(n, 3)`, and stands on something."""
        return self._space.is_free(as_points(points))

    def sees(self, start: ArrayLike, ends: ArrayLike) -> NDArray[np.bool_]:
        """Return whether straight ways lead from a point `(3,)` on the floor to others `(n, 3)`, on level ground."""
        return self._space.sees(as_points(start), as_points(ends))

    def clearance(self, points: ArrayLike, within: float) -> Array:
        """Return the distances `(n,)` of places `(n, 3)` on the floor from what the agent keeps away from [m].

        Infinite where it is farther than `within` [m].
        """
        distances = self.surface.obstacles.nearest(as_points(points), within)[1]
        return np.where(distances <= within, distances, np.inf)

    def way(self, nodes: NDArray[np.intp]) -> Array:
        """Return points `(m, 3)` [m] along moves of the graph from node to node, with room for the agent between."""
        points, middles = self.points[nodes], self._graph.middles[nodes]
        parts = [points[:1]]
        for k, free in enumerate(self._space.sees(points[:-1], points[1:])):
            start, end = points[k], points[k + 1]
            if not free:
                between = self._space.around(start, end)
                corners = np.vstack([start, between, end])
                if not self._space.sees(corners[:-1], corners[1:]).all():
                    between = middles[[k, k + 1]]
                parts.append(between)
            parts.append(end[None])
        return np.concatenate(parts)

    def nearest(self, points: ArrayLike) -> tuple[Array, Array]:
        """Return places on the floor where the agent has room, the nearest to points `(n, 3)` on the same floor.

        Returns:
            the places `(n, 3)`: where a point is free, below or above it; NaN where its floor has none. And how far
            away they are seen from above `(n,)` [m], infinite if there is none.
        """
        points = as_points(points)
        cells, distances = self.near(points)
        best = distances.argmin(axis=1)
        rows = np.arange(len(points))
        distance = distances[rows, best]
        places = np.where(np.isfinite(distance)[:, None], self.points[cells[rows, best]], np.nan)
        free = self._space.is_free(points)
        places[free, :2], distance[free] = points[free, :2], 0.0
        return places, distance

    def near(self, points: Array) -> tuple[NDArray[np.intp], Array]:
        """Return some cells near points `(n, 3)` `(n, k)`, and how far away they are seen from above [m].

        Infinite: the cell is of another floor; its number is arbitrary.
        """
        nodes = np.zeros((len(points), _NEAREST), np.intp)
        distances = np.full((len(points), _NEAREST), np.inf)
        rest = np.arange(len(points))
        for count in (_NEAREST, _NEAREST**3):  # many, where the nearest ones are on another floor, such as a table
            distance, node = self._tree.query(points[rest, :2], k=count)
            node = np.minimum(node, len(self.points) - 1)  # there may be fewer
            height = points[rest, 2:] - self.points[node, 2]
            distance[(height < -self.agent.step_height) | (height > self.agent.height)] = np.inf
            order = np.argsort(distance, axis=1)[:, :_NEAREST]
            nodes[rest], distances[rest] = (np.take_along_axis(each, order, axis=1) for each in (node, distance))
            rest = rest[np.isinf(distances[rest, 0])]
            if not len(rest):
                break
        return nodes, distances

    def sample(self, count: int, rng: np.random.Generator, island: int | None = 0) -> Array:
        """Sample random free places `(count, 3)` [m], evenly over the area.

        Args:
            count: how many.
            rng: source of all that is random.
            island: of the places; None means any.

        Raises:
            ValueError: there is no such island.
        """
        cells, islands = self.points[: self.cell_count], self.islands[: self.cell_count]
        cells = cells if island is None else cells[islands == island]
        if not len(cells):
            raise ValueError(f'{self.name}: there is no island {island}, there are {self.islands.max() + 1}')
        chosen = cells[rng.integers(len(cells), size=count)]
        moved = chosen + np.append(rng.uniform(-0.5, 0.5, (count, 2)) * self.cell, np.zeros((count, 1)), axis=1)
        return np.where(self._space.is_free(moved)[:, None], moved, chosen)

    def distance_field(self, goals: ArrayLike) -> DistanceField:
        """Return the distances to the nearest of some goals `(k, 3)` [m] from anywhere; see `DistanceField`."""
        return DistanceField(self, as_points(goals))

    def shortest_path(self, start: ArrayLike, goals: ArrayLike) -> tuple[Array, float]:
        """Return the shortest path from a point `(3,)` to the nearest of some goals `(k, 3)` [m], and its length [m].

        See `DistanceField.path`, which is faster for several starts.
        """
        return self.distance_field(goals).path(start)

    def _find_islands(self, lowest: NDArray[np.bool_]) -> NDArray[np.intp]:
        count, labels = connected_components(self.graph, directed=False)
        area = np.bincount(labels, lowest, count)
        rank = np.empty(count, np.intp)
        rank[np.lexsort((-np.bincount(labels, minlength=count), -area))] = np.arange(count)
        return rank[labels]


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

    def __init__(self, cells: NavigationMap, goals: Array):
        self._map = cells
        self.goals = _snapped(cells, goals, 'goal')
        near, far = cells.near(self.goals)
        goal, nth = np.nonzero(far <= np.maximum(far.min(axis=1), cells.cell)[:, None])
        order = np.lexsort((far[goal, nth], near[goal, nth]))
        node, first = np.unique(near[goal, nth][order], return_index=True)
        self._goal_of = dict(zip(node.tolist(), goal[order][first].tolist(), strict=True))
        distances, self._before = cells.search.run(node, far[goal, nth][order][first])
        count = len(cells.points)
        first = np.flatnonzero(self._before == count)  # cells next to goals
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


def _snapped(cells: NavigationMap, points: Array, what: str) -> Array:
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
