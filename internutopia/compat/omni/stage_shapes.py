"""Stage shapes: what the stage shows of assets that are not USD, from the compiled model.

A layer has the default prim `Root`, a robot, an object or the scene, with its links or movable bodies by name below it,
and their shapes, those that images show, below these. Infinite planes are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import SCENE_PREFIX

if TYPE_CHECKING:
    from pxr import Sdf, Usd

_SHOWN = mujoco.MjvOption().geomgroup.astype(bool)
_BOX, _SPHERE, _ELLIPSOID = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_ELLIPSOID
_CAPSULE, _CYLINDER, _MESH = mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_MESH

_layers: WeakKeyDictionary[CompiledScene, dict[str | None, Any]] = WeakKeyDictionary()


def shapes_layer(world: Any, env_id: int, name: str | None) -> Sdf.Layer:
    """Return the layer of a robot or object of an env, or (None) of its scene."""
    compiled: CompiledScene = world.scene(env_id)
    layers = _layers.setdefault(compiled, {})
    if name not in layers:
        layers[name] = _make_layer(compiled, name)
    return layers[name]


def _make_layer(compiled: CompiledScene, name: str | None) -> Sdf.Layer:
    from pxr import Sdf, Usd, UsdGeom

    model = compiled.model
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    layer = Sdf.Layer.CreateAnonymous('shapes.usda')
    stage = Usd.Stage.Open(layer)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, '/Root').GetPrim())
    for body, path, frame in _bodies(compiled, data, name):
        if Sdf.Path.IsValidPathString(path):
            UsdGeom.Xform.Define(stage, path)
            _add_shapes(stage, path, model, data, body, frame)
    return layer


def _bodies(compiled: CompiledScene, data: mujoco.MjData, name: str | None) -> list[tuple[int, str, int]]:
    """Return bodies with the path of the prim that has their shapes, and the body of whose frame that prim has."""
    if name in compiled.robots:
        return [
            (link.body, f'/Root/{link_name}', link.body) for link_name, link in compiled.robots[name].bodies.items()
        ]
    model = compiled.model
    if name is not None:
        root = compiled.bodies[name].body
        return [(body, '/Root', root) for body in range(model.nbody) if root in _ancestors(model, body)]
    moving = {body.body: f'/Root/{short}' for short, body in compiled.bodies.items()}
    own = [body for body in range(model.nbody) if body == 0 or model.body(body).name.startswith(SCENE_PREFIX)]
    return [(body, moving.get(body, '/Root'), body if body in moving else 0) for body in own]


def _ancestors(model: mujoco.MjModel, body: int) -> list[int]:
    above = [body]
    while body:
        body = int(model.body_parentid[body])
        above.append(body)
    return above


def _add_shapes(stage: Usd.Stage, path: str, model: mujoco.MjModel, data: mujoco.MjData, body: int, frame: int) -> None:
    """Add the shapes of a body below a prim that has the frame of a body."""
    from pxr import Gf, UsdGeom, Vt

    geoms = np.flatnonzero(model.geom_bodyid == body)
    shown = geoms[_SHOWN[np.clip(model.geom_group[geoms], 0, len(_SHOWN) - 1)]]
    turn = data.xmat[frame].reshape(3, 3)
    for geom in (shown if len(shown) else geoms).tolist():
        shape = _shape(stage, f'{path}/geom_{geom}', model, geom)
        if shape is None:
            continue
        gprim, scale = shape
        matrix = np.eye(4)
        rotation = turn.T @ data.geom_xmat[geom].reshape(3, 3)
        matrix[:3, :3] = np.diag(scale) @ rotation.T
        matrix[3, :3] = turn.T @ (data.geom_xpos[geom] - data.xpos[frame])
        gprim.MakeMatrixXform().Set(Gf.Matrix4d(matrix))
        gprim.CreateExtentAttr(UsdGeom.Boundable.ComputeExtentFromPlugins(gprim, 0.0))
        gprim.CreateDisplayColorAttr(Vt.Vec3fArray([Gf.Vec3f(*model.geom_rgba[geom, :3].tolist())]))


def _shape(stage: Usd.Stage, path: str, model: mujoco.MjModel, geom: int) -> tuple[Any, NDArray[np.float64]] | None:
    """Add the shape of a geom; returns it and the scale it needs, None for a shape that the stage does not show."""
    from pxr import UsdGeom, Vt

    kind, size, even = mujoco.mjtGeom(int(model.geom_type[geom])), model.geom_size[geom], np.ones(3)
    if kind == _MESH:
        mesh = UsdGeom.Mesh.Define(stage, path)
        number = model.geom_dataid[geom]
        vertices, faces = model.mesh_vertadr[number], model.mesh_faceadr[number]
        points = model.mesh_vert[vertices : vertices + model.mesh_vertnum[number]]
        triangles = model.mesh_face[faces : faces + model.mesh_facenum[number]]
        mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(points, np.float32)))
        mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.ascontiguousarray(triangles.ravel(), np.int32)))
        mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        return mesh, even
    if kind == _BOX:
        cube = UsdGeom.Cube.Define(stage, path)
        cube.CreateSizeAttr(2.0)
        return cube, size
    if kind in (_SPHERE, _ELLIPSOID):
        sphere = UsdGeom.Sphere.Define(stage, path)
        sphere.CreateRadiusAttr(1.0)
        return sphere, size if kind == _ELLIPSOID else even * size[0]
    if kind in (_CAPSULE, _CYLINDER):
        tube = (UsdGeom.Capsule if kind == _CAPSULE else UsdGeom.Cylinder).Define(stage, path)
        tube.CreateAxisAttr(UsdGeom.Tokens.z)
        tube.CreateRadiusAttr(float(size[0]))
        tube.CreateHeightAttr(float(2 * size[1]))
        return tube, even
    return None
