"""Convex parts of one connected piece of a mesh.

They follow from the first of these rules that holds:

1. A flat piece, in whatever plane, has no hull: it becomes plates.
2. A convex piece is its hull.
3. A rectilinear one, such as a wall with a door, is exactly the boxes that it consists of.
4. What nearly fills its hull is that.
5. What is closed otherwise is left to CoACD, once it is simplified: a `Solid`.
6. The rest are sheets, which become plates: what is open, and the inside of a room, a closed piece that faces inwards.

Hulls that nearly fill a box are boxes. "Nearly" is a distance, the `tolerance` of the piece: `RELATIVE_TOLERANCE` of
its greatest extent, but at most `TOLERANCE`, and at least that of the caller. No part stands over the surface by more
than about that, so an opening that is wider than twice that stays open.

The order is that of M. Garland and P. Heckbert, "Surface simplification using quadric error metrics" (1997), but many
edges that do not touch each other are collapsed at once, each into one of its ends. Closed surfaces stay closed and
connected as they are, outlines of open ones stay where they are within the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from internutopia.model.meshes.hulls import HULL_VERTICES, box_around, fills_hull, hull
from internutopia.model.meshes.part_cache import ConvexPart
from internutopia.model.meshes.rectilinear import boxes_of
from internutopia.model.meshes.sheets import SCALE_FREE_SIZE, flat_thickness, plates
from internutopia.model.meshes.surfaces import (
    PREVIOUS,
    Floats,
    Ints,
    Surface,
    cross,
    normals_of,
    principal_extents,
    simplified,
)

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
        faces = faces[(faces != faces[:, PREVIOUS]).all(axis=1)]
    used, index = np.unique(faces, return_inverse=True)
    return Surface(vertices[used], index.reshape(-1, 3).astype(np.int64))


def _quadrics(vertices: Floats, faces: Ints) -> tuple[Floats, Floats]:
    """Sum `(n, 4, 4)` squared distances from the planes around each vertex by area, and the areas `(n,)`.

    An edge that only one face has counts as a plane across that face, too.
    """
    corners = vertices[faces]
    crosses = cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(crosses, axis=1)
    normals = crosses / np.maximum(areas, 1e-300)[:, None]
    edges = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    _, index, counts = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True, return_counts=True)
    rim = counts[index.ravel()] == 1
    sides = vertices[edges[rim, 1]] - vertices[edges[rim, 0]]
    across = cross(sides, np.repeat(normals, 3, axis=0)[rim])
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
        old, new = (cross(tri[:, 1] - tri[:, 0], tri[:, 2] - tri[:, 0]) for tri in (before, after))
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


TOLERANCE = 0.1
"""Tolerance [m] by which a part of a large piece may exceed the surface."""
RELATIVE_TOLERANCE = 0.04
"""The same of a small piece, as a part of its greatest extent."""
STATIC_TOLERANCE = 0.02
"""Least tolerance [m] of static geometry: the keys of a keyboard on a desk do not matter to a robot."""
ROOM_SIZE = 2.0
"""Least extent [m] along x, y and z of a closed piece that faces inwards to be a room; a smaller one is a mistake."""
MAX_PLATES = 2000
"""Maximum number of plates of a sheet; others are made coarser."""

_SLACK = 0.25  # part of the tolerance that bevels, boxes and cells have
_WHOLE_SLACK = 0.5  # the same of all pieces together: what is open wider than 3.5 times the tolerance stays open
_FINE = 0.125  # part that simplification may use up
_MANY_FACES = 200  # a piece of more is simplified before it is analysed
_MANY_PLATES = 12  # flat ones; a sheet of more gets curved ones, within the tolerance
_FRONT = 0.5  # cosine between the normal of a flat piece and those of the faces on its front
_LEAST_FILLING = 0.7  # a piece that fills less of its hull's volume is not compared with it
_THIN = 1e-3  # an open piece that is flat except for this part of its extent is not compared with its hull


@dataclass(frozen=True)
class Solid:
    """A closed concave piece that faces outwards, simplified, and its tolerance [m]."""

    surface: Surface
    tolerance: float

    @property
    def work(self) -> float:
        """Estimate of CoACD's work: up to 0.8 ms of processor time for each unit.

        That grows with the triangles, with their area in a cube of size 1, on which CoACD puts its samples, and with
        the cuts until parts are as close to the surface as the tolerance requires.
        """
        size = float(self.surface.extent.max())
        _, areas = normals_of(self.surface.vertices[self.surface.faces])
        return len(self.surface.faces) * float(areas.sum()) / size**2 * size / self.tolerance


def parts_of(piece: Surface, finest: float = 0.0) -> list[ConvexPart] | Solid:
    """Return convex parts of a connected piece in metres, or a `Solid` for CoACD; `finest` [m]: least tolerance."""
    tolerance = tolerance_of(piece, finest)
    if flat := piece.is_flat():
        piece = _front_of(piece)
    closed = not flat and piece.is_closed() and not is_room(piece)
    if closed:
        piece = facing_out(piece)
        if piece.is_convex():
            return [hull_part(piece, tolerance)]
        if (found := boxes_of(piece, _SLACK * tolerance)) is not None:
            axes, boxes = found
            return [ConvexPart(corners, _box_volume(corners @ axes), axes) for corners in boxes]
    if len(piece.faces) > _MANY_FACES:
        piece = collapsed(piece, _FINE * tolerance)
    if (part := _nearly_convex(piece, tolerance, closed=closed)) is not None:
        return [part]
    return Solid(piece, tolerance) if closed else sheet_parts(piece, tolerance)


def whole_part(mesh: Surface, finest: float) -> ConvexPart | None:
    """Return the hull of all pieces of a small mesh in metres if they nearly fill it: a keyboard and its keys."""
    if mesh.extent.max() > SCALE_FREE_SIZE or mesh.is_flat(_THIN):
        return None
    tolerance, around = tolerance_of(mesh, finest), hull(mesh.vertices)
    return hull_part(around, tolerance) if fills_hull(mesh, around, _WHOLE_SLACK * tolerance) else None


def is_room(piece: Surface) -> bool:
    """Return True if a closed piece is the inside of a room: it faces inwards, and is large."""
    return piece.volume < 0 and bool(piece.extent.min() > ROOM_SIZE)


def facing_out(closed: Surface) -> Surface:
    """Return a closed surface, flipped if it faces inwards."""
    return closed if closed.volume > 0 else closed.flipped()


def tolerance_of(piece: Surface, finest: float = 0.0) -> float:
    """Return the distance [m] by which parts of a piece may exceed it; at least `finest` [m]."""
    return max(finest, min(TOLERANCE, RELATIVE_TOLERANCE * float(piece.extent.max())))


def hull_part(convex: Surface, tolerance: float) -> ConvexPart:
    """Return a closed convex surface as a part, with few vertices, and as a box if it nearly is one."""
    if len(convex.vertices) > HULL_VERTICES:
        convex = hull(convex.vertices, HULL_VERTICES)
    if (box := box_around(convex, _SLACK * tolerance)) is None:
        return ConvexPart(convex.vertices, abs(convex.volume))
    axes, corners = box
    return ConvexPart(corners @ axes.T, _box_volume(corners), axes)


def sheet_parts(sheet: Surface, tolerance: float) -> list[ConvexPart]:
    """Return a surface as plates behind its faces, so that it stays hollow; `tolerance` [m]: of curved ones."""
    thickness = flat_thickness(float(sheet.extent.max()))
    if not sheet.is_flat(_THIN):
        thickness = min(thickness, float(sheet.extent.min()) / 4)
    while len(found := plates(sheet, thickness, tolerance, _MANY_PLATES)) > MAX_PLATES:
        sheet = simplified(sheet.vertices, sheet.faces, len(sheet.faces) // 2)
    return found


def _nearly_convex(piece: Surface, tolerance: float, *, closed: bool) -> ConvexPart | None:
    """Return the hull of a piece that nearly fills it."""
    if piece.is_flat(_THIN) or (not closed and piece.volume < 0):
        return None
    around = hull(piece.vertices)
    if closed and piece.volume < _LEAST_FILLING * around.volume:
        return None
    return hull_part(around, tolerance) if fills_hull(piece, around, _SLACK * tolerance) else None


def _front_of(flat: Surface) -> Surface:
    """Return a flat piece without the other side that a closed one has."""
    normal = principal_extents(flat.vertices)[0][-1]
    normal = normal * np.sign(normal[np.argmax(np.abs(normal))])  # the same on every machine
    towards = normals_of(flat.vertices[flat.faces])[0] @ normal > _FRONT
    return Surface(flat.vertices, flat.faces[towards]) if flat.is_closed() else flat


def _box_volume(corners: Floats) -> float:
    return float(np.prod(np.ptp(corners, axis=0)))
