"""USD text of what a model looks like: a prim for each body, with its geoms and lights, in one colour each."""

from __future__ import annotations

from functools import lru_cache

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.shapes import height_field, mesh_text, shape_scale, shape_text, vector_text
from internutopia.rendering.geom_groups import shown_geoms

_GEOM = mujoco.mjtGeom
_UNCOLOURED = (0.5, 0.5, 0.5, 1.0)  # a geom with this colour shows that of its material
_EDGE = 100.0  # [m], half of what is seen of a plane without end


@lru_cache(64)
def visual_text(model: mujoco.MjModel) -> str:
    """Return prims `b<body>` of a model, in the frames of the bodies."""
    parts: list[list[str]] = [[] for _ in range(model.nbody)]
    for geom in np.flatnonzero(shown_geoms(model)).tolist():
        if (colour := _colour(model, geom))[3] > 0:
            parts[model.geom_bodyid[geom]].append(_geom(model, geom, colour))
    for light in range(model.nlight):
        if model.light_active[light] and model.light_type[light] != mujoco.mjtLightType.mjLIGHT_DIRECTIONAL:
            parts[model.light_bodyid[light]].append(
                f'def SphereLight "l{light}"\n{{\nfloat inputs:radius = 0.1\nfloat inputs:intensity = 20000\n'
                f'double3 xformOp:translate = {vector_text(model.light_pos[light])}\n'
                'uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
            )
    return ''.join(f'def Xform "b{body}"\n{{\n{"".join(own)}}}\n' for body, own in enumerate(parts))


def _colour(model: mujoco.MjModel, geom: int) -> NDArray[np.float32]:
    own, material = model.geom_rgba[geom], int(model.geom_matid[geom])
    return model.mat_rgba[material] if material >= 0 and np.allclose(own, _UNCOLOURED) else own


def _geom(model: mujoco.MjModel, geom: int, colour: NDArray[np.float32]) -> str:
    kind, text = _shape(model, geom)
    scale = shape_scale(model, geom)
    if model.geom_type[geom] == _GEOM.mjGEOM_ELLIPSOID:
        scale = model.geom_size[geom]
    return (
        f'def {kind} "g{geom}"\n{{\n{text}'
        f'color3f[] primvars:displayColor = [{vector_text(colour[:3])}]\n'
        f'float[] primvars:displayOpacity = [{float(colour[3]):g}]\n'
        f'double3 xformOp:translate = {vector_text(model.geom_pos[geom])}\n'
        f'quatd xformOp:orient = {vector_text(model.geom_quat[geom])}\n'
        f'double3 xformOp:scale = {vector_text(scale)}\n'
        'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient", "xformOp:scale"]\n}\n'
    )


def _shape(model: mujoco.MjModel, geom: int) -> tuple[str, str]:
    """Return type and attributes of a geom's prim."""
    kind = _GEOM(model.geom_type[geom])
    if kind == _GEOM.mjGEOM_PLANE:
        x, y = np.where(model.geom_size[geom, :2] > 0, model.geom_size[geom, :2], _EDGE).tolist()
        corners = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]])
        return 'Mesh', _mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))
    if kind == _GEOM.mjGEOM_ELLIPSOID:
        return 'Sphere', 'double radius = 1\n'
    if kind == _GEOM.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        points = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
        return 'Mesh', _mesh(points, model.mesh_face[model.mesh_faceadr[mesh] :][: model.mesh_facenum[mesh]])
    if kind == _GEOM.mjGEOM_HFIELD:
        return 'Mesh', _mesh(*height_field(model, int(model.geom_dataid[geom])))
    shape, _, text = shape_text(model, geom)
    return shape, text


def _mesh(points: NDArray[np.floating], faces: NDArray[np.integer]) -> str:
    return f'{mesh_text(points, faces)}uniform token subdivisionScheme = "none"\n'
