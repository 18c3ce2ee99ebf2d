"""Graph of the cells of a map, with the shortest paths on it, and maps as files.

The files are the folder `maps` of the cache (`internutopia.util.cache_folder`). Their name is a hash of all that a
map depends on: what the scene is made of and where it is, contents of its files, the agent, the cells and the code.
They are arrays in NumPy's format; nothing in them is executed.
"""

from __future__ import annotations

import math
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

from internutopia.model.asset_files import limits
from internutopia.model.asset_paths import resolve
from internutopia.model.importers.load import content_key
from internutopia.model.spec import SceneSpec
from internutopia.navigation.agent import Agent
from internutopia.navigation.surface import FreeSpace, Obstacles, Surface
from internutopia.util.cache_folder import CacheFolder, code_version, hashed
from internutopia.util.log import warn_once

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Neighbours = dict[tuple[int, int], Ints]

REACH = 5
"""Moves go up to so many cells along x or y, in 80 directions: lengths of shortest paths are exact to 0.5 %, where they
would be 8 % too long with moves to the eight neighbours."""

# half of the moves between cells, as each can be made both ways; in the order of the columns that they lead to
_CELL_MOVES = [
    (2 * i, 2 * j)
    for i in range(REACH + 1)
    for j in range(-REACH, REACH + 1)
    if math.gcd(i, j) == 1 and (i > 0 or j > 0)
]
_CORNER_REACH = 6  # columns
_CORNER_MOVES = [
    (i, j)
    for i in range(-_CORNER_REACH, _CORNER_REACH + 1)
    for j in range(-_CORNER_REACH, _CORNER_REACH + 1)
    if (i, j) != (0, 0)
]
_SPARE = 256  # moves: of 32 goals, or more
_LOCK = threading.Lock()  # one for all, so that maps can be copied


@dataclass(frozen=True)
class Graph:
    """Nodes of a map and the straight moves between them, along which the agent has room.

    Nodes are cells of two by two columns, which are enough where paths are straight, and single columns at corners,
    where they turn. Corners are moved from the middle of their column to where the agent passes as close as it may, so
    that paths are not too long there.

    Attributes:
        places: `(n,)` of the nodes in the free space, the cells first.
        points: `(n, 3)` of the nodes [m].
        middles: `(n, 3)` of their columns [m]: moves between these have room for certain.
        is_corner: `(n,)` whether paths may turn there.
        cell_count: how many of them are cells.
        lengths: `(n, n)` sparse, of the moves [m].
    """

    places: Ints
    points: Array
    middles: Array
    is_corner: NDArray[np.bool_]
    cell_count: int
    lengths: csr_array

    @classmethod
    def of(cls, space: FreeSpace) -> Graph:
        """Return the graph of the places where an agent has room."""
        is_cell = (space.columns % 2 == 0).all(axis=1)
        neighbours = space.neighbours()
        cells, corners = np.flatnonzero(is_cell), _corners(neighbours)
        turning = np.zeros(len(space.heights), bool)
        turning[corners] = True
        corners = corners[~is_cell[corners]]
        places, cell_count = np.append(cells, corners), len(cells)
        node = np.full(len(space.heights), -1, np.int32)
        node[places] = np.arange(len(places))
        middles = space.points[places]
        points, centres = middles.copy(), np.full((len(places), 2), np.nan)
        points[cell_count:, :2], centres[cell_count:] = space.pulled(points[cell_count:])
        moves: list[tuple[NDArray[np.int32], NDArray[np.int32], Array]] = []
        for direction in _CORNER_MOVES:
            start, end = (node[each] for each in _passable(neighbours, corners, direction))
            once = (end >= 0) & ((end < cell_count) | (start < end))  # corners meet each other both ways
            start, end = start[once], end[once]
            length = _distances(points, start, end)
            # the straight line cuts the corner where both are about the same point
            arc = (centres[start] == centres[end]).all(axis=1)
            part = np.minimum(length[arc] / (2.0 * space.clearance), 1.0)
            length[arc] = 2.0 * space.clearance * np.arcsin(part)
            moves.append((start, end, length))
        start, end, length = (np.concatenate(parts) for parts in zip(*moves, strict=True))
        ends = np.append(start, end), np.append(end, start)
        shape = len(places), len(places)
        between_corners = csr_array(coo_array((np.append(length, length), ends), shape=shape))
        lengths = _between_cells(neighbours, cells, node, points) + between_corners
        return cls(places, points, middles, turning[places], cell_count, lengths)


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


def _between_cells(neighbours: Neighbours, cells: Ints, node: NDArray[np.int32], points: Array) -> csr_array:
    """Return the lengths `(n, n)` of the moves between cells [m]; they are the first of all n nodes."""
    half = len(_CELL_MOVES)
    ends, lengths = np.full((len(cells), 2 * half), -1, np.int32), np.empty((len(cells), 2 * half))
    for number, direction in enumerate(_CELL_MOVES):
        start, end = (node[each] for each in _passable(neighbours, cells, direction))
        there, back = half + number, half - 1 - number  # so that rows are sorted, as cells are by their columns
        ends[start, there], ends[end, back] = end, start
        lengths[start, there] = lengths[end, back] = _distances(points, start, end)
    known = ends >= 0
    first = np.zeros(len(points) + 1, np.int32)
    first[1:] = np.cumsum(np.append(known.sum(axis=1), np.zeros(len(points) - len(cells), int)))
    return csr_array((lengths[known], ends[known], first), shape=(len(points), len(points)))


def _distances(points: Array, start: NDArray[np.int32], end: NDArray[np.int32]) -> Array:
    """Return the distances `(m,)` between points of these numbers [m]."""
    way = points[end] - points[start]
    return np.sqrt(np.einsum('ij,ij->i', way, way))


def _corners(neighbours: Neighbours) -> Ints:
    """Find the places where shortest paths turn: next to an obstacle, with far more free than blocked around."""
    count = len(neighbours[0, 0]) - 1
    blocked = np.sum([there[:-1] == count for there in neighbours.values()], axis=0)
    return np.flatnonzero((blocked > 0) & (blocked < 3))


def _passable(neighbours: Neighbours, start: Ints, move: tuple[int, int]) -> tuple[Ints, Ints]:
    """Return the places from which a move by so many columns can be made, and where it ends."""
    none, now, before = len(neighbours[0, 0]) - 1, start, (0, 0)
    steps = max(abs(move[0]), abs(move[1]))
    for number in range(1, steps + 1):
        (i, up_i), (j, up_j) = ((number * d // steps, -(-number * d // steps)) for d in move)
        now = neighbours[i - before[0], j - before[1]][now]
        beside = neighbours[up_i - i, up_j - j][now]  # the line goes between these two, which must both be free
        free = beside < none
        start, now, before = start[free], now[free], (i, j)
    return start, now


LEAST_TIME = 0.2
"""Processor time [s] from which on making a map is worth keeping it."""
CAPACITY = 2 << 30
"""Bytes of all files, beyond which maps that were used least recently are deleted."""

_SPARSE = ('data', 'indices', 'indptr')


@dataclass(frozen=True)
class MapFile:
    """File of the map of a scene for an agent."""

    folder: CacheFolder
    name: str

    @classmethod
    def of(
        cls,
        scene: SceneSpec,
        agent: Agent,
        cell: float,
        movable: bool,
        bounds: tuple[Sequence[float], Sequence[float]] | None,
    ) -> MapFile:
        """Return the file of a map; see `NavigationMap.of_scene`. OSError or ValueError if the scene cannot be read."""
        assets = [scene.asset, *(each.asset for each in scene.objects)]
        contents = [content_key(resolve(asset)) for asset in assets if asset]
        code = code_version(), code_version(('navigation',), ('scipy',))
        choice = agent, cell, movable, bounds and tuple(map(tuple, bounds))
        name = hashed(code, limits().of_sizes(), scene, contents, choice)
        return cls(CacheFolder('maps', 'navigation maps', CAPACITY), f'{name}.npz')

    def read(self) -> tuple[Surface, Graph] | None:
        """Read the map, None if there is none; a damaged file is a warning and counts as none."""
        path = self.folder.used(self.name)
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return _surface(arrays), _graph(arrays)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
            warn_once('%s is damaged, the navigation map is computed again: %s', path, error, lasting=False)
            return None

    def write(self, surface: Surface, graph: Graph) -> None:
        """Keep a map."""
        parts: dict[str, Any] = {
            **{f'surface.{name}': value for name, value in _values(surface).items() if name != 'obstacles'},
            **{f'obstacles.{name}': value for name, value in _values(surface.obstacles).items()},
            **{f'graph.{name}': value for name, value in _values(graph).items() if name != 'lengths'},
            **{f'lengths.{name}': getattr(graph.lengths, name) for name in _SPARSE},
        }
        self.folder.write(self.name, lambda file: np.savez(file, **parts))


def _values(what: Any) -> dict[str, Any]:
    return {field.name: getattr(what, field.name) for field in fields(what)}


def _part(arrays: dict[str, Any], group: str) -> dict[str, Any]:
    prefix = f'{group}.'
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def _surface(arrays: dict[str, Any]) -> Surface:
    parts = _part(arrays, 'surface')
    spacing = float(parts.pop('spacing'))
    return Surface(spacing=spacing, obstacles=Obstacles(**_part(arrays, 'obstacles')), **parts)


def _graph(arrays: dict[str, Any]) -> Graph:
    parts = _part(arrays, 'graph')
    count, size = int(parts.pop('cell_count')), len(parts['places'])
    lengths = csr_array(tuple(arrays[f'lengths.{name}'] for name in _SPARSE), shape=(size, size))
    return Graph(cell_count=count, lengths=lengths, **parts)
