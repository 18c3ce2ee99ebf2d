"""Colliders of a model as USD text: primitives, convex hulls, height fields."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.bodies import Floats

_GEOM = mujoco.mjtGeom
_RINGS, _SECTORS = 9, 28  # of an ellipsoid between its poles, about its shortest axis
_DISC, _DISC_SHARE = 1 / 3, 0.5  # thickness of an ellipsoid that is a disc, and height of the cylinder instead of it
# Distance at which a cylinder gets contacts [m]. With less, PhysX finds none at some places of wide and thin boxes,
# such as floors, and the cylinder sinks into them
_CYLINDER_OFFSET = 0.1
_MOST_VERTICES = 255  # of a convex hull, on the CPU


def shape_text(model: mujoco.MjModel, geom: int) -> tuple[str, str, str]:
    """Return type of a geom's prim, its API schemas besides those of all colliders, and its attributes.

    NotImplementedError for a shape that PhysX has no collider for.
    """
    kind, size = _GEOM(model.geom_type[geom]), model.geom_size[geom]
    if kind == _GEOM.mjGEOM_PLANE:
        return 'Plane', '', 'uniform token axis = "Z"\n'
    if kind == _GEOM.mjGEOM_SPHERE:
        return 'Sphere', '', f'double radius = {float(size[0])}\n'
    if kind == _GEOM.mjGEOM_BOX:
        return 'Cube', '', 'double size = 2\n'
    if kind == _GEOM.mjGEOM_CAPSULE:
        text = f'uniform token axis = "Z"\ndouble radius = {float(size[0])}\ndouble height = {float(2 * size[1])}\n'
        return 'Capsule', '', text
    if kind == _GEOM.mjGEOM_CYLINDER:
        return _cylinder(float(size[0]), float(2 * size[1]), 2)
    if kind == _GEOM.mjGEOM_ELLIPSOID:
        if (axis := disc_axis(size)) is not None:
            return _cylinder(float(size.max()), float(_DISC_SHARE * size[axis]), axis)
        return _mesh(*_ellipsoid(size), 'convexHull')
    if kind == _GEOM.mjGEOM_MESH:
        return _mesh(*_hull(model, int(model.geom_dataid[geom])), 'convexHull')
    if kind == _GEOM.mjGEOM_HFIELD:
        return _mesh(*height_field(model, int(model.geom_dataid[geom])), 'none')
    raise NotImplementedError(
        f"backend 'physx' has no collider for geom {model.geom(geom).name or geom!r}, of the type {kind.name}"
    )


def disc_axis(radii: Floats) -> int | None:
    """Return the axis of an ellipsoid that is a disc, such as a wheel, which rolls as a cylinder; None for others."""
    axis = int(np.argmin(radii))
    others = np.delete(radii, axis)
    return axis if others[0] == others[1] and radii[axis] < _DISC * others[0] else None


def shape_scale(model: mujoco.MjModel, geom: int) -> Floats:
    """Return the scale of a geom's prim, `(3,)`: half sizes of a box."""
    return model.geom_size[geom] if model.geom_type[geom] == _GEOM.mjGEOM_BOX else np.ones(3)


def vector_text(values: Floats) -> str:
    """Return numbers as a USD tuple."""
    return '(' + ', '.join(f'{float(value):.9g}' for value in values) + ')'


def mesh_text(points: NDArray[np.floating], faces: NDArray[np.integer]) -> str:
    """Return attributes of a mesh of triangles."""
    return (
        f'int[] faceVertexCounts = [{", ".join(["3"] * len(faces))}]\n'
        f'int[] faceVertexIndices = [{", ".join(map(str, faces.ravel().tolist()))}]\n'
        f'point3f[] points = [{", ".join(map(vector_text, points))}]\n'
    )


def _mesh(points: Floats, faces: NDArray[np.integer], approximation: str) -> tuple[str, str, str]:
    text = f'{mesh_text(points, faces)}uniform token physics:approximation = "{approximation}"\n'
    schemas = '"PhysicsMeshCollisionAPI", '
    if approximation == 'convexHull':
        schemas += '"PhysxConvexHullCollisionAPI", '
        text += f'int physxConvexHullCollision:hullVertexLimit = {_MOST_VERTICES}\n'
    return 'Mesh', schemas, text


def _hull(model: mujoco.MjModel, mesh: int) -> tuple[Floats, NDArray[np.integer]]:
    """Return vertices and faces of the convex hull of a mesh, as MuJoCo collides with it."""
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    points = model.mesh_vert[first : first + count].astype(np.float64)
    address = int(model.mesh_graphadr[mesh])
    if address < 0:
        faces = model.mesh_face[model.mesh_faceadr[mesh] :][: model.mesh_facenum[mesh]]
        return points, faces
    vertices, faces_number = model.mesh_graph[address : address + 2].tolist()
    ids = model.mesh_graph[address + 2 + vertices :][:vertices]
    faces = model.mesh_graph[address + 2 + 3 * vertices + 3 * faces_number :][: 3 * faces_number].reshape(-1, 3)
    place = np.zeros(count, np.intp)
    place[ids] = np.arange(vertices)
    return points[ids], place[faces]


def _cylinder(radius: float, height: float, axis: int) -> tuple[str, str, str]:
    """Return a cylinder about an axis, whose contacts are looked for from afar."""
    text = (
        f'uniform token axis = "{"XYZ"[axis]}"\ndouble radius = {radius}\ndouble height = {height}\n'
        f'float physxCollision:contactOffset = {_CYLINDER_OFFSET}\nfloat physxCollision:restOffset = 0\n'
    )
    return 'Cylinder', '"PhysxCollisionAPI", ', text


def _ellipsoid(radii: Floats) -> tuple[Floats, NDArray[np.integer]]:
    """Return a polyhedron whose vertices are on an ellipsoid, and finest around its shortest axis."""
    height = np.linspace(0, np.pi, _RINGS + 2)[1:-1]
    turn = np.arange(_SECTORS) * 2 * np.pi / _SECTORS
    rings = [
        np.column_stack([np.sin(h) * np.cos(turn), np.sin(h) * np.sin(turn), np.cos(h) + 0 * turn]) for h in height
    ]
    points = np.concatenate([*rings, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
    corner = np.arange(_SECTORS)
    beside = np.roll(corner, -1)
    last, top, bottom = (_RINGS - 1) * _SECTORS, len(points) - 2, len(points) - 1
    faces = [
        np.column_stack([np.full(_SECTORS, top), corner, beside]),
        np.column_stack([np.full(_SECTORS, bottom), last + beside, last + corner]),
    ]
    for ring in range(_RINGS - 1):
        upper, lower = ring * _SECTORS, (ring + 1) * _SECTORS
        faces.append(np.column_stack([upper + corner, lower + corner, upper + beside]))
        faces.append(np.column_stack([upper + beside, lower + corner, lower + beside]))
    axes = np.argsort(-radii, kind='stable')  # the shortest comes last, where the poles are
    turned = np.zeros_like(points)
    turned[:, axes] = points
    found = np.concatenate(faces)
    return turned * radii, found[:, ::-1] if np.linalg.det(np.eye(3)[axes]) < 0 else found


def height_field(model: mujoco.MjModel, field: int) -> tuple[Floats, NDArray[np.integer]]:
    """Return the upper surface of a height field as triangles."""
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    half_x, half_y, top, _ = model.hfield_size[field]
    heights = model.hfield_data[model.hfield_adr[field] :][: rows * columns].reshape(rows, columns) * top
    y, x = np.meshgrid(np.linspace(-half_y, half_y, rows), np.linspace(-half_x, half_x, columns), indexing='ij')
    points = np.stack([x, y, heights], axis=-1).reshape(-1, 3)
    row, column = np.mgrid[: rows - 1, : columns - 1]
    corner = (row * columns + column).ravel()
    one = np.stack([corner, corner + 1, corner + columns + 1], axis=-1)
    other = np.stack([corner, corner + columns + 1, corner + columns], axis=-1)
    return points, np.concatenate([one, other])
