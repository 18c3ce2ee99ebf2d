"""Shapes: geometry prims -> MuJoCo geoms, the same shape under the same transform.

A primitive stays a primitive if MuJoCo has one for what the transform makes of it, else it becomes a convex mesh.
Meshes have scale and shear baked into their vertices.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from mujoco import mjtGeom
from numpy.typing import NDArray

from internutopia.model.importers.transforms import Array, axis_scales, equal, polar
from internutopia.model.importers.usd.values import array, named_by_prim, value
from internutopia.model.meshes.sheets import flat_thickness
from internutopia.model.meshes.surfaces import fans, principal_extents, signed_volume

if TYPE_CHECKING:
    from pxr import Usd

_FLATNESS = 1e-4  # a mesh is flat if its least extent is below this part of its greatest
_SEGMENTS = 32  # of a circle in a mesh
# rotations that turn the z axis, along which MuJoCo's primitives stand, to the axis of the prim
_FROM_Z = {
    'X': np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]),
    'Y': np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    'Z': np.eye(3),
}


@dataclass(frozen=True)
class Indexed:
    """Values `(k, width)` of the corners of triangles, and the value of each corner, `index` `(m, 3)`."""

    values: Array
    index: NDArray[np.int32]


@dataclass(frozen=True)
class Shape:
    """A geom, placed relative to the origin of its prim, along the axes of the world.

    `vertices` `(n, 3)` [m] and `faces` `(m, 3)` are those of a mesh, in the geom's rotated frame, and `volume` [m3] is
    what they enclose; a mesh without faces is the convex hull of its vertices. `corners` `(m, 3)` are the
    `faceVertexIndices` of the prim that its faces come from, `stretch` `(3, 3)` is how its `points` `(n, 3)` were
    stretched.
    """

    type: mjtGeom
    rotation: Array
    size: tuple[float, ...] = ()
    offset: Array = field(default_factory=lambda: np.zeros(3))
    vertices: Array | None = None
    faces: NDArray[np.int32] | None = None
    volume: float = np.inf
    corners: NDArray[np.intp] | None = None
    points: Array | None = None
    stretch: Array = field(default_factory=lambda: np.eye(3))
    normals: Indexed | None = None
    coordinates: Indexed | None = None
    """On a texture: from the left and from the top, 1 is the other end."""
    flaws: tuple[str, ...] = ()
    """Rules that faces of its prim violate; these faces are left out."""

    def with_faces(self, chosen: NDArray[np.bool_]) -> Shape:
        """Return the part of a mesh that consists of some of its faces; `chosen` `(m,)`."""
        assert self.vertices is not None and self.faces is not None and self.corners is not None
        used, faces = np.unique(self.faces[chosen], return_inverse=True)
        faces = faces.reshape(-1, 3).astype(np.int32)
        points = None if self.points is None else self.points[used]
        return replace(self, vertices=self.vertices[used], faces=faces, corners=self.corners[chosen], points=points)

    def unscaled(self) -> tuple[Array, NDArray[np.int32], float]:
        """Return vertices, faces, and factors for the vertices; the same numbers for all copies of a mesh.

        The factor is negative for one that is mirrored, and 1 if it is not stretched the same in all directions.
        """
        assert self.vertices is not None and self.faces is not None
        factor = float(np.trace(self.stretch)) / 3
        if self.points is None or not equal(*(self.stretch + (1 - np.eye(3)) * factor).ravel()):
            return self.vertices.round(7) + 0.0, self.faces, 1.0  # without the noise that copies differ by
        return self.points, self.faces[:, ::-1] if factor < 0 else self.faces, factor

    def facing_out(self) -> Shape:
        """Return a flat shape with all faces on the side that `thickened` leaves where it is; others as they are."""
        if self.faces is None or not self.is_flat():
            return self
        against = self._crosses() @ self._front() < 0
        return replace(self, faces=np.where(against[:, None], self.faces[:, ::-1], self.faces))

    def is_flat(self) -> bool:
        """Return True for a mesh without volume, which MuJoCo cannot collide with."""
        if self.vertices is None:
            return False
        _, extents = self._extents
        return bool(extents[-1] < _FLATNESS * extents.max())

    @cached_property
    def _extents(self) -> tuple[Array, Array]:
        assert self.vertices is not None
        return principal_extents(self.vertices)

    def thickened(self) -> Shape:
        """Return a flat shape with a back; the front stays where it is. Horizontal ones grow downwards."""
        if self.type == mjtGeom.mjGEOM_PLANE:
            half = flat_thickness(2 * max(self.size[:2])) / 2
            size = (self.size[0], self.size[1], half)
            return replace(self, type=mjtGeom.mjGEOM_BOX, size=size, offset=-half * self.rotation[:, 2])
        assert self.vertices is not None and self.faces is not None
        thickness = flat_thickness(float(np.ptp(self.vertices, axis=0).max()))
        back = self.faces[:, ::-1] + len(self.vertices)
        vertices = np.concatenate([self.vertices, self.vertices - thickness * self._front()])
        faces = np.concatenate([self.faces, back]).astype(np.int32)
        volume = thickness * float(np.linalg.norm(self._crosses(), axis=1).sum()) / 2
        return Shape(self.type, self.rotation, vertices=vertices, faces=faces, volume=volume)

    def two_sided(self) -> Shape:
        """Return a mesh with each face on its back, too, for rendering: backs are not rendered."""
        assert self.faces is not None
        normals = self.normals
        if normals is not None:
            back = normals.index[:, ::-1] + len(normals.values)
            normals = Indexed(np.concatenate([normals.values, -normals.values]), np.concatenate([normals.index, back]))
        return replace(self, faces=np.concatenate([self.faces, self.faces[:, ::-1]]), normals=normals)

    def _crosses(self) -> Array:
        """Return `(m, 3)` normals of the faces of a mesh, as long as twice their areas."""
        assert self.vertices is not None and self.faces is not None
        corners = self.vertices[self.faces]
        return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])

    def _front(self) -> Array:
        """Return the unit normal `(3,)` of a flat mesh, on the side that most of its faces are on, or the upper one."""
        normal = self._extents[0][-1]
        up = float((self.rotation @ normal)[2])
        return normal * np.sign(up if abs(up) > 0.5 else normal @ self._crosses().sum(axis=0) or 1.0)


@named_by_prim
def shape_of(prim: Usd.Prim, linear: Array) -> Shape | None:
    """Return the shape of a prim of one of `SHAPES` under the linear part `(3, 3)` of its transform to the world.

    Faces that cannot be are not in it. None for a mesh that has no surface. ValueError, naming the prim, for one whose
    size or topology is wrong.
    """
    return SHAPES[str(prim.GetTypeName())](prim, linear)


def _cube(prim: Usd.Prim, linear: Array) -> Shape:
    half = _length(prim, 'size') / 2
    if (straight := axis_scales(linear)) is not None:
        return Shape(mjtGeom.mjGEOM_BOX, straight[0], tuple(half * straight[1]))
    return _convex(half * np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), axis=-1).reshape(-1, 3), linear)


def _sphere(prim: Usd.Prim, linear: Array) -> Shape:
    axes, scales, _ = np.linalg.svd(linear)
    if equal(*scales):
        return Shape(mjtGeom.mjGEOM_SPHERE, polar(linear)[0], (_length(prim, 'radius') * scales[0],))
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    return Shape(mjtGeom.mjGEOM_ELLIPSOID, axes, tuple(_length(prim, 'radius') * scales))


def _cylinder(prim: Usd.Prim, linear: Array) -> Shape:
    linear = linear @ _FROM_Z[_axis(prim)]
    radius, half = _length(prim, 'radius'), _length(prim, 'height') / 2
    straight = axis_scales(linear)
    if straight is not None and equal(*straight[1][:2]):
        return Shape(mjtGeom.mjGEOM_CYLINDER, straight[0], (radius * straight[1][0], half * straight[1][2]))
    return _convex(np.concatenate([_circle(radius, -half), _circle(radius, half)]), linear)


def _capsule(prim: Usd.Prim, linear: Array) -> Shape:
    linear = linear @ _FROM_Z[_axis(prim)]
    radius, half = _length(prim, 'radius'), _length(prim, 'height') / 2
    straight = axis_scales(linear)
    if straight is not None and equal(*straight[1]):
        return Shape(mjtGeom.mjGEOM_CAPSULE, straight[0], (radius * straight[1][0], half * straight[1][0]))
    latitudes = np.linspace(0, np.pi / 2, _SEGMENTS // 4 + 1)
    top = np.concatenate([_circle(radius * np.cos(a), half + radius * np.sin(a)) for a in latitudes])
    return _convex(np.concatenate([top, top * [1, 1, -1]]), linear)


def _cone(prim: Usd.Prim, linear: Array) -> Shape:
    half = _length(prim, 'height') / 2
    base = _circle(_length(prim, 'radius'), -half)
    return _convex(np.concatenate([base, [[0, 0, half]]]), linear @ _FROM_Z[_axis(prim)])


def _plane(prim: Usd.Prim, linear: Array) -> Shape:
    axis = _axis(prim)
    linear = linear @ _FROM_Z[axis]
    extent = (_length(prim, 'width') / 2, _length(prim, 'length') / 2)
    if axis != 'Z':  # width lies along z for a plane facing x, along x for one facing y
        extent = extent[::-1]
    normal = np.cross(linear[:, 0], linear[:, 1])
    normal *= np.sign(normal @ linear[:, 2]) / np.linalg.norm(normal)
    x = linear[:, 0] / np.linalg.norm(linear[:, 0])
    rotation = np.stack([x, np.cross(normal, x), normal], axis=1)
    scales = np.linalg.norm(linear[:, :2], axis=0)
    return Shape(mjtGeom.mjGEOM_PLANE, rotation, (extent[0] * scales[0], extent[1] * scales[1], 1.0))


def _mesh(prim: Usd.Prim, linear: Array) -> Shape | None:
    points, counts = array(prim, 'points', float, 3), array(prim, 'faceVertexCounts', int)
    indices, holes = array(prim, 'faceVertexIndices', int), array(prim, 'holeIndices', int)
    if not len(points) or not len(counts):
        return None
    if counts.min() < 0 or counts.sum() != len(indices):
        raise ValueError(f'faceVertexCounts sum up to {counts.sum()}, but there are {len(indices)} faceVertexIndices')
    exist = (indices >= 0) & (indices < len(points))
    finite = np.isfinite(points[np.where(exist, indices, 0)]).all(axis=1)
    rules = {
        f'faceVertexIndices must be within 0..{len(points) - 1}, the points there are': exist,
        'points must be finite numbers': finite,
    }
    flaws = tuple(rule for rule, holds in rules.items() if not holds.all())
    broken = np.repeat(np.arange(len(counts)), counts)[~(exist & finite)]
    left_out = np.isin(np.arange(len(counts)), [*holes, *broken])
    first, number = fans(counts, np.where(left_out, 0, np.maximum(counts - 2, 0)))
    corners = np.stack([first, first + number + 1, first + number + 2], axis=1)
    used, faces = np.unique(indices[corners], return_inverse=True)
    faces = faces.reshape(-1, 3).astype(np.int32)
    rotation, stretch = polar(linear)
    vertices = points[used] @ stretch
    if not len(used):
        if flaws:
            raise ValueError('; '.join(flaws))
        return None
    extents = principal_extents(vertices)[1]
    if extents[1] <= _FLATNESS * extents.max():
        return None
    if (value(prim, 'orientation') == 'leftHanded') != (np.linalg.det(linear) < 0):
        faces, corners = faces[:, ::-1], corners[:, ::-1]
    return Shape(
        mjtGeom.mjGEOM_MESH,
        rotation,
        vertices=vertices,
        faces=faces,
        volume=abs(signed_volume(vertices[faces])),
        corners=corners,
        points=points[used],
        stretch=stretch,
        flaws=flaws,
    )


SHAPES = {
    'Cube': _cube,
    'Sphere': _sphere,
    'Cylinder': _cylinder,
    'Capsule': _capsule,
    'Cone': _cone,
    'Plane': _plane,
    'Mesh': _mesh,
}
"""Prim type names that have a shape."""


def _length(prim: Usd.Prim, name: str) -> float:
    """Return an attribute that must be a positive length, in the stage's unit."""
    found = value(prim, name)
    if not (isinstance(found, int | float) and np.isfinite(found) and found > 0):
        raise ValueError(f'{name} must be a positive number, it is {found!r}')
    return float(found)


def _axis(prim: Usd.Prim) -> str:
    axis = value(prim, 'axis')
    if axis not in _FROM_Z:
        raise ValueError(f'axis must be X, Y or Z, it is {axis!r}')
    return str(axis)


def _convex(vertices: Array, linear: Array) -> Shape:
    rotation, stretch = polar(linear)
    return Shape(mjtGeom.mjGEOM_MESH, rotation, vertices=vertices @ stretch)


def _circle(radius: float, z: float) -> Array:
    angles = np.arange(_SEGMENTS) * (2 * np.pi / _SEGMENTS)
    return np.stack([radius * np.cos(angles), radius * np.sin(angles), np.full(_SEGMENTS, z)], axis=1)
