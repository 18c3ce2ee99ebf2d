"""Surfaces of triangles: connected pieces, tests for closed and convex ones, coarser ones.

A surface is `vertices` `(n, 3)` [m] and `faces` `(m, 3)`, counterclockwise seen from outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FLAT = 1e-5
"""A surface is flat if its least extent along its principal axes is below this part of its greatest."""

_SAME_POINT = 1e-6  # vertices closer than this part of the surface's extent are one
PREVIOUS = [2, 0, 1]  # corners of a triangle before each of its corners
_NO_VOLUME = 1e-12  # a sheet with two sides encloses less than this part of the cube around it
_FLAT_EDGE = 1e-5  # how far a face may stand over its neighbour's plane, as part of the extent, and count as convex


@dataclass(frozen=True)
class Surface:
    """Triangles that share their vertices, without degenerate ones."""

    vertices: Floats
    faces: Ints

    @property
    def extent(self) -> Floats:
        """`(3,)` size of the box around it along x, y, z [m]."""
        return np.ptp(self.vertices, axis=0)

    @property
    def volume(self) -> float:
        """Volume inside [m3] if it is closed and faces outwards; negative if it faces inwards."""
        return signed_volume(self.vertices[self.faces])

    def is_flat(self, part: float = FLAT) -> bool:
        """Return True if all of it is in a plane, in any direction, except for a part of its greatest extent."""
        _, extents = principal_extents(self.vertices)
        return bool(extents[-1] <= part * extents.max())

    def is_closed(self) -> bool:
        """Return True if each edge of a face is one of a neighbour, too, in the other direction."""
        forth, back = _codes(_edges(self.faces), len(self.vertices))
        return np.array_equal(np.sort(forth), np.sort(back))

    def is_convex(self) -> bool:
        """Return True if no face exceeds the plane of a neighbour; for a closed connected surface facing outwards."""
        pairs = _neighbours(self.faces, len(self.vertices))
        corners = self.vertices[self.faces]
        normals, _ = normals_of(corners)
        heights = np.einsum('pci,pi->pc', corners[pairs[:, 1]] - corners[pairs[:, 0], :1], normals[pairs[:, 0]])
        return bool(heights.max(initial=0.0) <= _FLAT_EDGE * self.extent.max(initial=0.0))

    def flipped(self) -> Surface:
        """Return the same with inside and outside exchanged."""
        return Surface(self.vertices, self.faces[:, ::-1])


def principal_extents(points: Floats) -> tuple[Floats, Floats]:
    """Return principal axes `(3, 3)` of points `(n, 3)`, one a row, widest first, and extents `(3,)` along them [m]."""
    centred = points - points.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1].T[::-1]
    return axes, np.ptp(centred @ axes.T, axis=0)


def cross(a: Floats, b: Floats) -> Floats:
    """Return cross products of arrays `(..., 3)` of one shape: as `np.cross`, in a fraction of its time for few."""
    found = np.empty(a.shape)
    for axis, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        found[..., axis] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return found


def signed_volume(triangles: Floats) -> float:
    """Return the volume [m3] inside a closed surface of triangles `(m, 3, 3)`; negative if they face inwards."""
    a, b, c = (triangles[:, k] - triangles[0, 0] for k in range(3))
    return float(np.einsum('ij,ij->', a, cross(b, c))) / 6


def normals_of(corners: Floats) -> tuple[Floats, Floats]:
    """Return `(m, 3)` unit normals of triangles `(m, 3, 3)`, zero for those without an area, and areas `(m,)` [m2]."""
    crosses = cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(crosses, axis=1)
    longest = np.linalg.norm(corners - corners[:, PREVIOUS], axis=2).max(axis=1, initial=0.0)
    wide = lengths > _SAME_POINT * longest**2
    return np.where(wide[:, None], crosses / np.maximum(lengths, 1e-300)[:, None], 0.0), lengths / 2


def fans(counts: NDArray[np.integer], triangles: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Return for each triangle of polygons the first corner of its polygon and its number in that, `(m,)` each.

    `counts`: of corners of each polygon, which follow each other; `triangles`: that each is cut into.
    """
    first = np.repeat(np.cumsum(counts) - counts, triangles)
    return first, np.arange(triangles.sum()) - np.repeat(np.cumsum(triangles) - triangles, triangles)


def pieces(vertices: Floats, faces: NDArray[np.integer]) -> list[Surface]:
    """Return the connected parts of a mesh, their vertices merged where they coincide.

    What shares no vertices with the rest and is closed is a part, even where it touches another one. In the rest, parts
    are connected by edges that two faces share. Of faces back to back, those between parts are left out; elsewhere one
    of them stands for both sides of a sheet.
    """
    points, index = _merged(vertices)
    labels = _connected(len(vertices), _edges(np.asarray(faces, np.int64)))[faces[:, 0]]
    faces, distinct = _without_degenerate(index[faces])
    labels = labels[distinct]
    closed = _are_closed(points, faces, labels)
    singles, doubles = _back_to_back(faces[~closed])
    rest = np.concatenate([singles, doubles[~np.isin(doubles, singles).all(axis=1)]])
    rest_labels = _connected(len(rest), _neighbours(rest, len(points)))
    return _split(points, faces[closed], labels[closed]) + _split(points, rest, rest_labels)


def simplified(vertices: Floats, faces: NDArray[np.integer], limit: int) -> Surface:
    """Return a coarser mesh of at most `limit` triangles: vertices in one cell of an ever wider grid are merged.

    Of those in a cell the outermost one stays, so the whole does not shrink.
    """
    surface = _welded(vertices, faces)
    extent, cells = surface.extent.max(initial=0.0), 2048.0
    while len(surface.faces) > limit:
        points, low = surface.vertices, surface.vertices.min(axis=0)
        order = np.argsort(-np.linalg.norm(points - low - surface.extent / 2, axis=1), kind='stable')
        grid = np.floor((points[order] - low) * (cells / extent))
        _, first, index = np.unique(grid, axis=0, return_index=True, return_inverse=True)
        cell = np.empty(len(points), np.int64)
        cell[order] = index.ravel()
        surface = _welded(points[order[first]], cell[surface.faces])
        cells *= 0.7
    return surface


def _welded(vertices: Floats, faces: NDArray[np.integer]) -> Surface:
    points, index = _merged(vertices)
    return Surface(points, _without_degenerate(index[faces])[0])


def _merged(vertices: Floats) -> tuple[Floats, Ints]:
    """Return vertices without those that coincide with another one, and the index of each in them."""
    vertices = np.asarray(vertices, float)
    step = max(float(np.ptp(vertices, axis=0).max(initial=0.0)) * _SAME_POINT, np.finfo(float).tiny)
    grid = np.round((vertices - vertices.min(axis=0)) / step)
    _, first, index = np.unique(grid, axis=0, return_index=True, return_inverse=True)
    return vertices[first], index.ravel().astype(np.int64)


def _without_degenerate(faces: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return faces with three different vertices, and a mask `(m,)` of them."""
    distinct = (faces != faces[:, PREVIOUS]).all(axis=1)
    return faces[distinct], distinct


def _are_closed(vertices: Floats, faces: Ints, labels: Ints) -> NDArray[np.bool_]:
    """Return a mask `(m,)` of faces that form a closed surface around a volume with those of the same label."""
    edges = np.sort(_edges(faces), axis=1)
    signs = np.where(_edges(faces)[:, 0] == edges[:, 0], 1, -1)
    groups, index = np.unique(labels, return_inverse=True)
    count = len(vertices)
    codes, places = np.unique((np.repeat(index, 3) * count + edges[:, 0]) * count + edges[:, 1], return_inverse=True)
    unpaired = codes[np.bincount(places, signs, len(codes)) != 0] // count**2
    a, b, c = np.moveaxis((vertices - vertices.mean(axis=0))[faces], 1, 0)
    volumes = np.bincount(index, np.einsum('ij,ij->i', a, cross(b, c)) / 6, len(groups))
    hollow = np.abs(volumes) > _NO_VOLUME * np.ptp(vertices, axis=0).max(initial=0.0) ** 3
    hollow[unpaired] = False
    return hollow[index]


def _split(vertices: Floats, faces: Ints, labels: Ints) -> list[Surface]:
    """Return one surface for the faces of each label."""
    order = np.argsort(labels, kind='stable')
    groups = np.split(faces[order], np.flatnonzero(np.diff(labels[order])) + 1)
    used = (np.unique(group, return_inverse=True) for group in groups if len(group))
    return [Surface(vertices[corners], index.reshape(-1, 3).astype(np.int64)) for corners, index in used]


def _back_to_back(faces: Ints) -> tuple[Ints, Ints]:
    """Return faces whose three vertices no other face has, and one of each group of those that share them."""
    _, first, index, counts = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return faces[counts[index.ravel()] == 1], faces[np.sort(first[counts > 1])]


def _edges(faces: Ints) -> Ints:
    """Return `(3 m, 2)` edges in the direction of their faces, those of a face in a row."""
    return faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)


def _codes(edges: Ints, count: int) -> tuple[Ints, Ints]:
    """Return one number per edge, and that of the edge in the other direction."""
    return edges[:, 0] * count + edges[:, 1], edges[:, 1] * count + edges[:, 0]


def _neighbours(faces: Ints, count: int) -> Ints:
    """Return `(p, 2)` pairs of faces at edges of just two faces, in opposite directions; each pair both ways."""
    forth, back = _codes(_edges(faces), count)
    codes, first, counts = np.unique(forth, return_index=True, return_counts=True)
    codes, first = codes[counts == 1], first[counts == 1]
    place = np.minimum(np.searchsorted(codes, back[first]), max(len(codes) - 1, 0))
    met = codes[place] == back[first] if len(codes) else np.zeros(0, bool)
    return np.stack([first[met] // 3, first[place[met]] // 3], axis=1)


def _connected(count: int, pairs: Ints) -> Ints:
    """Return the label `(count,)` of the group that each node is in, the least node of the group."""
    labels = np.arange(count)
    while True:
        hooked = labels.copy()
        least = labels[pairs].min(axis=1)
        for side in range(2):
            np.minimum.at(hooked, labels[pairs[:, side]], least)
        while not np.array_equal(hooked, hooked[hooked]):
            hooked = hooked[hooked]
        if np.array_equal(hooked, labels):
            return labels
        labels = hooked
