"""Prims on a stage of OpenUSD, and USD text of what a model looks like.

Isaac Sim's `pxr` can be imported once its app runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.shapes import height_field, mesh_text, shape_scale, shape_text, vector_text
from internutopia.rendering.geom_groups import shown_geoms

Floats = NDArray[np.floating[Any]]
_GEOM = mujoco.mjtGeom
_UNCOLOURED = (0.5, 0.5, 0.5, 1.0)  # a geom with this colour shows that of its material
_EDGE = 100.0  # [m], half of what is seen of a plane without end


class Prims:
    """Prims of the root layer of a `pxr.Usd.Stage`, which a USD text describes."""

    def __init__(self, stage: Any):
        self._stage = stage
        self._layer = stage.GetRootLayer()

    def copy(self, text: str, paths: Sequence[str], prim: str) -> None:
        """Copy the prim of a name in a text to some paths; what refers to it there refers to the copy."""
        from pxr import Sdf

        source = parsed(text)
        with Sdf.ChangeBlock():
            for path in paths:
                if self._layer.GetPrimAtPath(path):
                    del self._layer.GetPrimAtPath(path).nameParent.nameChildren[path.rpartition('/')[2]]
                Sdf.CreatePrimInLayer(self._layer, path)
                Sdf.CopySpec(source, f'/{prim}', self._layer, path)

    def set(self, values: Sequence[tuple[str, str, str, Any]]) -> None:
        """Set attributes: path of the prim, name, type, value; tuples are vectors."""
        from pxr import Sdf

        with Sdf.ChangeBlock():
            for path, name, kind, value in values:
                prim = Sdf.CreatePrimInLayer(self._layer, path)
                attribute = prim.attributes.get(name)
                if attribute is None:
                    uniform = Sdf.VariabilityUniform if name == 'xformOpOrder' else Sdf.VariabilityVarying
                    attribute = Sdf.AttributeSpec(prim, name, Sdf.ValueTypeNames.Find(kind), uniform)
                attribute.default = value

    def update(self, path: str, text: str) -> None:
        """Give a prim of the stage the API schemas and attributes of the prim in a text."""
        prim, source = self._stage.GetPrimAtPath(path), parsed(text)
        for schema in source.rootPrims[0].GetInfo('apiSchemas').prependedItems:
            prim.AddAppliedSchema(schema)
        for attribute in source.rootPrims[0].attributes:
            prim.CreateAttribute(attribute.name, attribute.typeName).Set(attribute.default)


def pose(path: str, position: Floats, orientation: Floats | None = None) -> list[tuple[str, str, str, Any]]:
    """Return the attributes that put a prim somewhere, for `Prims.set`."""
    values: list[tuple[str, str, str, Any]] = [(path, 'xformOp:translate', 'double3', tuple(position.tolist()))]
    order = ['xformOp:translate']
    if orientation is not None:
        from pxr import Gf

        values.append((path, 'xformOp:orient', 'quatd', Gf.Quatd(*orientation.tolist())))
        order.append('xformOp:orient')
    return [*values, (path, 'xformOpOrder', 'token[]', order)]


def parsed(text: str) -> Any:
    """Return a USD text, without its first line, as a layer."""
    from pxr import Sdf

    layer = Sdf.Layer.CreateAnonymous('.usda')
    layer.ImportFromString(f'#usda 1.0\n{text}')
    return layer


@lru_cache(64)
def visual_text(model: mujoco.MjModel) -> str:
    """Return prims `b<body>` of a model, in the frames of the bodies, with geoms and lights, in one colour each."""
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
