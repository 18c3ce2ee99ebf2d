"""Simplification of surfaces by collapsing edges, with a bound on the error.

The order is that of M. Garland and P. Heckbert, "Surface simplification using quadric error metrics" (1997), but many
edges that do not touch each other are collapsed at once, each into one of its ends. Closed surfaces stay closed and
connected as they are, outlines of open ones stay where they are within the error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from internutopia.model.meshes.surfaces import Floats, Ints, Surface

_SMALLEST_TURN = 0.2  # cosine of the angle by which a collapse may turn a face


def collapsed(surface: Surface, error: float) -> Surface:
    """Return a coarser surface, whose vertices are some of the old ones.

    Args:
        surface: What is simplified.
        error: Greatest distance [m] of a vertex from the planes of the faces that it stands for, in the mean of these
            (root mean square by area).
    """
    vertices, faces = surface.vertices, surface.faces
    count = len(vertices)
    quadrics, weights = _quadrics(vertices, faces)
    banned, rng = np.zeros(0, np.int64), np.random.default_rng(0)
    while len(faces) > 4:
        half, shared = _half_edges(faces, count)
        sources, targets = half // count, half % count
        costs = _costs(vertices, quadrics, weights, sources, targets)
        allowed = (costs <= error**2) & ~np.isin(half, banned)
        order = np.flatnonzero(allowed)
        order = order[np.lexsort((costs[order], sources[order]))]
        best = order[np.unique(sources[order], return_index=True)[1]]  # one for each source
        starts = np.searchsorted(sources, np.arange(count + 1))
        valid = _common_neighbours(half, count, starts, best) == shared[best]
        valid &= _keeps_faces(vertices, faces, half[best], count)
        banned = np.concatenate([banned, half[best[~valid]]])
        if len(best) == 0:
            break
        best = best[valid]
        best = best[costs[best] <= np.median(costs[best])] if len(best) else best  # the cheaper half, in any order
        chosen = best[_apart(targets, starts, sources[best], rng.permutation(len(best)), count)]
        moved = np.arange(count)
        moved[sources[chosen]] = targets[chosen]
        np.add.at(quadrics, targets[chosen], quadrics[sources[chosen]])
        np.add.at(weights, targets[chosen], weights[sources[chosen]])
        faces = moved[faces]
        faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    used, index = np.unique(faces, return_inverse=True)
    return Surface(vertices[used], index.reshape(-1, 3).astype(np.int64))


def _quadrics(vertices: Floats, faces: Ints) -> tuple[Floats, Floats]:
    """Sum `(n, 4, 4)` squared distances from the planes around each vertex by area, and the areas `(n,)`.

    An edge that only one face has counts as a plane across that face, too.
    """
    corners = vertices[faces]
    crosses = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(crosses, axis=1)
    normals = crosses / np.maximum(areas, 1e-300)[:, None]
    edges = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    _, index, counts = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True, return_counts=True)
    rim = counts[index.ravel()] == 1
    sides = vertices[edges[rim, 1]] - vertices[edges[rim, 0]]
    across = np.cross(sides, np.repeat(normals, 3, axis=0)[rim])
    lengths = np.linalg.norm(across, axis=1)
    across /= np.maximum(lengths, 1e-300)[:, None]
    planes = np.concatenate([normals, across])
    points = np.concatenate([corners[:, 0], vertices[edges[rim, 0]]])
    planes = np.concatenate([planes, -np.einsum('ij,ij->i', planes, points)[:, None]], axis=1)
    shares = np.concatenate([areas, lengths**2])
    products = shares[:, None, None] * planes[:, :, None] * planes[:, None, :]
    quadrics, weights = np.zeros((len(vertices), 4, 4)), np.zeros(len(vertices))
    for column in faces.T:
        np.add.at(quadrics, column, products[: len(faces)])
        np.add.at(weights, column, areas)
    for column in edges[rim].T:
        np.add.at(quadrics, column, products[len(faces) :])
    return quadrics, np.maximum(weights, 1e-300)


def _half_edges(faces: Ints, count: int) -> tuple[Ints, Ints]:
    """Return edges in both directions as `source * count + target`, sorted, and the number of faces of each."""
    a, b = faces[:, [0, 1, 2]].ravel(), faces[:, [1, 2, 0]].ravel()
    codes = np.sort(np.concatenate([a * count + b, b * count + a]))  # faster than np.unique, which makes a hash table
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return codes[first], np.diff(first, append=len(codes))


def _costs(vertices: Floats, quadrics: Floats, weights: Floats, sources: Ints, targets: Ints) -> Floats:
    """Return the mean square distance of each target from the planes of both ends."""
    point = np.concatenate([vertices, np.ones((len(vertices), 1))], axis=1)[targets]
    both = quadrics[sources] + quadrics[targets]
    return np.abs(np.einsum('ei,eij,ej->e', point, both, point)) / (weights[sources] + weights[targets])


def _common_neighbours(half: Ints, count: int, starts: Ints, best: Ints) -> Ints:
    """Count the vertices that are neighbours of both ends of an edge.

    If they are more than its faces, the surface would touch itself without the edge.
    """
    number, neighbours = _rings(half % count, starts, half[best] // count)
    codes = neighbours * count + (half[best] % count)[number]
    place = np.minimum(np.searchsorted(half, codes), len(half) - 1)  # in the edges, which are sorted
    return np.bincount(number[half[place] == codes], minlength=len(best))


def _keeps_faces(vertices: Floats, faces: Ints, best: Ints, count: int) -> NDArray[np.bool_]:
    """Return True where no face around the source of an edge turns over when the source moves to the target."""
    place = np.full(count, -1)
    place[best // count] = np.arange(len(best))
    valid = np.ones(len(best), bool)
    for corner in range(3):
        number = place[faces[:, corner]]
        around = faces[number >= 0]
        number = number[number >= 0]
        target = best[number] % count
        kept = (around != target[:, None]).all(axis=1)
        around, number, target = around[kept], number[kept], target[kept]
        before = vertices[around]
        after = before.copy()
        after[:, corner] = vertices[target]
        old, new = (np.cross(tri[:, 1] - tri[:, 0], tri[:, 2] - tri[:, 0]) for tri in (before, after))
        least = _SMALLEST_TURN * np.linalg.norm(old, axis=1) * np.linalg.norm(new, axis=1)
        valid[number[np.einsum('ij,ij->i', old, new) <= least]] = False
    return valid


def _apart(targets: Ints, starts: Ints, sources: Ints, rank: Ints, count: int) -> NDArray[np.bool_]:
    """Return which collapses, one a source, touch no faces of another one that comes before by rank."""
    number, claimed = _rings(targets, starts, sources)
    number = np.concatenate([number, np.arange(len(sources))])
    claimed = np.concatenate([claimed, sources])
    owner = np.full(count, len(sources))
    np.minimum.at(owner, claimed, rank[number])
    lost = np.bincount(number[owner[claimed] != rank[number]], minlength=len(sources))
    return lost == 0


def _rings(targets: Ints, starts: Ints, sources: Ints) -> tuple[Ints, Ints]:
    """Return the neighbours of each of the sources: which one of them, and the neighbour."""
    sizes = starts[sources + 1] - starts[sources]
    number = np.repeat(np.arange(len(sources)), sizes)
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return number, targets[starts[sources][number] + offsets]
