"""Colliders of meshes: `physics:approximation` of `MeshCollisionAPI`, as far as MuJoCo supports it.

| approximation | what does not move | what moves |
|---|---|---|
| none (or not given), meshSimplification | coarse convex parts, so that it stays hollow | convex hull, as in PhysX |
| sdf, convexDecomposition | convex parts | convex parts |
| convexHull | convex hull | convex hull |
| boundingCube, boundingSphere | the smallest one found around it | the same |
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from mujoco import mjtGeom

from internutopia.model.importers import FileWarnings
from internutopia.model.importers.transforms import Array
from internutopia.model.importers.usd.shapes import Shape
from internutopia.model.importers.usd.values import value
from internutopia.model.meshes.convex_parts import facing_out, is_room
from internutopia.model.meshes.part_cache import ConvexPart
from internutopia.model.meshes.sheets import plates
from internutopia.model.meshes.surfaces import pieces

if TYPE_CHECKING:
    from pxr import Usd


class Collider(Enum):
    """Kind of shape that a mesh collides as."""

    NONE = 'nothing'
    HULL = 'its convex hull'
    FALLBACK = 'its convex hull, although the file requests another shape'
    PARTS = 'convex parts'
    COARSE_PARTS = 'convex parts within `STATIC_TOLERANCE`'
    BOX = 'a box around it'
    SPHERE = 'a sphere around it'


_ALWAYS = {
    'convexHull': Collider.HULL,
    'convexDecomposition': Collider.PARTS,
    'sdf': Collider.PARTS,
    'boundingCube': Collider.BOX,
    'boundingSphere': Collider.SPHERE,
}
_SURFACES = ('none', 'meshSimplification')  # triangles
_FEW_FACES = 2000  # a mesh of at most that many is checked for being convex before it goes to the decomposition
_SOME_FACES = 20  # that are tested first
_SPHERE_ROUNDS = 200


def collider_of(prim: Usd.Prim, shape: Shape, *, moves: bool, warnings: FileWarnings) -> Collider:
    """Return the collider of a shape of a prim; `moves`: under forces. An unknown name is warned of."""
    from pxr import UsdPhysics

    if shape.faces is None:
        return Collider.HULL  # a primitive
    above = prim
    while above and not above.HasAPI(UsdPhysics.MeshCollisionAPI):
        above = above.GetParent()
    requested = str(value(above, 'physics:approximation')) if above else 'none'
    if requested not in _ALWAYS and requested not in _SURFACES:
        warnings.add(f'approximation {requested!r} is unknown; none is assumed', prim)
    kind = _ALWAYS.get(requested, Collider.FALLBACK if moves else Collider.COARSE_PARTS)
    return Collider.HULL if kind in (Collider.PARTS, Collider.COARSE_PARTS) and _is_convex(shape) else kind


def bounding_box(shape: Shape) -> Shape:
    """Return a box around a mesh, along its own axes or its principal ones, whichever is smaller."""
    assert shape.vertices is not None
    centred = shape.vertices - shape.vertices.mean(axis=0)
    principal = np.linalg.eigh(centred.T @ centred)[1]
    principal[:, 0] *= np.sign(np.linalg.det(principal))
    spans = [(axes, shape.vertices @ axes) for axes in (np.eye(3), principal)]
    return _box(shape, *min(spans, key=lambda span: np.prod(np.ptp(span[1], axis=0))))


def bounding_sphere(shape: Shape) -> Shape:
    """Return a sphere around a mesh, within 1 % of the smallest."""
    assert shape.vertices is not None
    centre = (shape.vertices.min(axis=0) + shape.vertices.max(axis=0)) / 2
    for k in range(_SPHERE_ROUNDS):  # Badoiu and Clarkson: ever smaller steps towards the farthest point
        centre = centre + (_farthest(shape.vertices, centre) - centre) / (k + 2)
    radius = float(np.linalg.norm(_farthest(shape.vertices, centre) - centre))
    return Shape(mjtGeom.mjGEOM_SPHERE, shape.rotation, (radius,), shape.offset + shape.rotation @ centre)


def part_of(shape: Shape, part: ConvexPart) -> Shape:
    """Return a convex part of a mesh as a shape at the same place."""
    if part.axes is not None:
        return _box(shape, part.axes, part.vertices @ part.axes)
    return Shape(shape.type, shape.rotation, offset=shape.offset, vertices=part.vertices, volume=part.volume)


def _box(shape: Shape, axes: Array, spread: Array) -> Shape:
    """Return the box around points of a shape's frame, which are given by their places `(n, 3)` along axes."""
    low, high = spread.min(axis=0), spread.max(axis=0)
    size = np.maximum((high - low) / 2, 1e-4)
    centre = shape.rotation @ axes @ ((low + high) / 2)
    return Shape(mjtGeom.mjGEOM_BOX, shape.rotation @ axes, tuple(size), shape.offset + centre)


def _is_convex(shape: Shape) -> bool:
    """Return True if a mesh fills its convex hull; False also for one that is too large to test quickly."""
    assert shape.vertices is not None and shape.faces is not None
    if len(shape.faces) > _FEW_FACES or not _is_on_one_side(shape):
        return False
    faces = shape.facing_out().faces
    assert faces is not None
    found = pieces(shape.vertices, faces)
    if len(found) != 1:
        return False
    if shape.is_flat():
        return len(plates(found[0], 1.0)) == 1
    (solid,) = found
    return solid.is_closed() and facing_out(solid).is_convex() and not is_room(solid)


def _is_on_one_side(shape: Shape) -> bool:
    """Return True if a mesh is on one side of each of some of its faces, as all convex ones are; a fast first test."""
    assert shape.vertices is not None and shape.faces is not None
    corners = shape.vertices[shape.faces[:: len(shape.faces) // _SOME_FACES + 1]]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(float).tiny)
    heights = normals @ shape.vertices.T - np.einsum('ij,ij->i', normals, corners[:, 0])[:, None]
    slack = 1e-3 * np.ptp(shape.vertices, axis=0).max()
    return bool(((heights.max(axis=1) <= slack) | (heights.min(axis=1) >= -slack)).all())


def _farthest(points: Array, centre: Array) -> Array:
    return points[np.argmax(((points - centre) ** 2).sum(axis=1))]
