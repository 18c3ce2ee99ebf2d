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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from internutopia.model.meshes.hulls import HULL_VERTICES, box_axes, box_corners, fills_hull, hull
from internutopia.model.meshes.part_cache import ConvexPart
from internutopia.model.meshes.rectilinear import boxes_of
from internutopia.model.meshes.sheets import SCALE_FREE_SIZE, flat_thickness, plates
from internutopia.model.meshes.simplification import collapsed
from internutopia.model.meshes.surfaces import Floats, Surface, normals_of, principal_extents, simplified

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
_THIN = 1e-3  # an open piece that is flat but for this part of its extent is not compared with its hull


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
    axes = box_axes(convex, _SLACK * tolerance)
    if axes is None:
        return ConvexPart(convex.vertices, abs(convex.volume))
    spread = convex.vertices @ axes
    corners = box_corners(spread.min(axis=0), spread.max(axis=0))
    return ConvexPart(corners @ axes.T, _box_volume(corners), axes)


def sheet_parts(sheet: Surface, tolerance: float) -> list[ConvexPart]:
    """Return a surface as plates behind its faces, so that it stays hollow; `tolerance` [m]: of curved ones."""
    thickness = flat_thickness(float(sheet.extent.max()))
    if not sheet.is_flat(_THIN):
        thickness = min(thickness, float(sheet.extent.min()) / 4)
    found = plates(sheet, thickness)
    if len(found) > _MANY_PLATES:
        while len(found := plates(sheet, thickness, tolerance)) > MAX_PLATES:
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
