"""Search of shortest ways on a graph from a place beside its nodes, without a copy of the graph for each."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

Array = NDArray[np.float64]

_SPARE = 256  # moves: of 32 goals, or more
_LOCK = threading.Lock()  # one for all, so that maps can be copied


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
