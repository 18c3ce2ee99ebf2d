"""Graph of a map: cells and the straight moves between them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from internutopia.navigation.agent import Agent
from internutopia.navigation.free_space import FreeSpace

REACH = 5
"""Moves go up to so many cells along x or y, in 80 directions: lengths of shortest paths are exact to 0.5 %, where they
would be 8 % too long with moves to the eight neighbours."""

# half of the moves, as each can be made both ways
_MOVES = [
    (i, j)
    for i in range(REACH + 1)
    for j in range(-REACH, REACH + 1)
    if math.gcd(i, j) == 1 and (i > 0 or j > 0)
]  # fmt: skip


def cell_graph(space: FreeSpace, places: NDArray[np.intp], agent: Agent, spacing: float) -> csr_array:
    """Lengths of the moves between cells `(n, n)` [m], along which the agent has room.

    Args:
        space: where the agent has room.
        places: `(n,)` the place of each cell, in columns of even numbers: cells are twice as large as columns.
        agent: the agent.
        spacing: of columns [m].
    """
    cells = np.full(len(space.heights) + 1, -1)
    cells[places] = np.arange(len(places))
    edges: list[NDArray[np.intp]] = []
    lengths: list[NDArray[np.float64]] = []
    for move in _MOVES:
        start, end = _passable(space, places, 2 * np.array(move), agent.step_height)
        rise = space.heights[end] - space.heights[start]
        edges.append(np.stack([cells[start], cells[end]]))
        lengths.append(np.sqrt((2.0 * spacing) ** 2 * (move[0] ** 2 + move[1] ** 2) + rise**2))
    tail, head = np.concatenate(edges, axis=1)
    length = np.concatenate(lengths)
    ends = (np.append(tail, head), np.append(head, tail))
    return csr_array(coo_array((np.append(length, length), ends), shape=(len(places), len(places))))


def _passable(
    space: FreeSpace, places: NDArray[np.intp], move: NDArray[np.intp], step: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places from which a move by so many columns can be made, and where it ends."""
    start, now = places, places
    steps = int(np.abs(move).max())
    for number in range(1, steps + 1):
        at = number * move / steps  # on a line of the grid; what is beside it must be free, too
        for column in {tuple(np.floor(at)), tuple(np.ceil(at))}:
            height = space.heights[now]
            there = space.find(space.columns[start] + np.array(column, np.intp), height - step, height + step)
            start, now = start[there >= 0], there[there >= 0]
    return start, now
