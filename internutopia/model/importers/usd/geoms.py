"""Geoms: geometry prims -> geoms of a body, visual and colliding ones.

One geom does both where it can, in group 0. Else the visual meshes are in group 2 and collide with nothing, and the
colliders are in group 3. A geom has the path of its prim as name, one of several materials that of its `GeomSubset`,
and its own collider the path of the prim with `/collider`, or `/part_<i>` for convex parts, behind it, unless the
prim is invisible and collides as one geom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtMeshInertia
from numpy.typing import NDArray

from internutopia.model.groups import BOTH_GROUP, COLLIDER_GROUP, VISUAL_GROUP
from internutopia.model.importers import FileWarnings
from internutopia.model.importers.transforms import Array, Frame, polar, to_quat
from internutopia.model.importers.usd.appearance import Visual, VisualBuilder
from internutopia.model.importers.usd.colliders import (
    Collider,
    bounding_box,
    bounding_sphere,
    collider_of,
    part_of,
)
from internutopia.model.importers.usd.shapes import Shape
from internutopia.model.meshes.convex_parts import STATIC_TOLERANCE
from internutopia.model.meshes.decomposition import MAX_TRIANGLES, decompose
from internutopia.model.meshes.hulls import hull_faces
from internutopia.model.meshes.surfaces import signed_volume

if TYPE_CHECKING:
    from pxr import Usd

HULL_RATIO = 1.2
"""A mesh whose convex hull has more than this many times its volume is warned of as concave."""
_LEAST_VERTICES = 4  # of a mesh that MuJoCo takes


@dataclass(frozen=True)
class Merger:
    """Prim whose meshes are one collider, as a mesh below it refers to it.

    Attributes:
        path: of the prim.
        frame: its origin on the body, and the rotation from the world's axes to the body's.
        linear: `(3, 3)` linear part of its transform to the world.
        relative: `(4, 4)` transform from the mesh to it; acts on columns.
    """

    path: str
    frame: Frame
    linear: Array
    relative: Array


@dataclass(frozen=True)
class GeomTarget:
    """Destination of the geoms of a prim.

    Attributes:
        body: the body that they are part of.
        frame: the prim's origin on the body, and the rotation from the world's axes to the body's.
        moves: whether forces move the body.
        boundless: whether planes that collide are infinite even if they do not face up; else they become thin boxes.
        on_geom: called with each geom, and with its share of what the prim weighs.
        merger: makes the prim part of one collider; None for one that collides for itself.
    """

    body: mujoco.MjsBody
    frame: Frame
    moves: bool
    boundless: bool
    on_geom: Callable[[mujoco.MjsGeom, float], None]
    merger: Merger | None = None


@dataclass(frozen=True)
class _Concave:
    """A mesh to decompose: the path of its prim, and the least tolerance [m] of the parts."""

    path: str
    target: GeomTarget
    shape: Shape
    finest: float


class Geometry:
    """Builder of the geometry of one stage in its spec."""

    def __init__(self, spec: mujoco.MjSpec, warnings: FileWarnings):
        self._spec = spec
        self._warnings = warnings
        self._visual_builder = VisualBuilder(spec, warnings)
        self._meshes: dict[tuple[bytes, ...], str] = {}
        self._concave: list[_Concave] = []  # waiting for their parts
        self._hulls: list[tuple[str, Shape, Usd.Prim]] = []  # names of geoms that should not be hulls

    def add(self, prim: Usd.Prim, shape: Shape, target: GeomTarget, *, shown: bool, collides: bool) -> None:
        """Add the geoms of a prim that is seen, collides, or both; convex parts are added by `finish`."""
        path = str(prim.GetPath())
        if shape.type == mjtGeom.mjGEOM_PLANE:  # MuJoCo's do not move, and collide as if they were infinite
            is_infinite = not collides or target.boundless or shape.rotation[2, 2] > 0.99
            shape = shape if target.body.name == 'world' and is_infinite else shape.thickened()
        kind = collider_of(prim, shape, moves=target.moves, warnings=self._warnings) if collides else Collider.NONE
        flat = shape.is_flat()
        solid = shape.thickened() if flat else shape
        visuals = self._visual_builder.of(prim, shape) if shown else []
        if kind in (Collider.HULL, Collider.FALLBACK) and len(visuals) < 2 and not (flat and visuals):
            visual = visuals[0] if visuals else Visual(path, solid, self._visual_builder.rgba(prim))
            colliders = [self._geom(target, path, visual.shape, BOTH_GROUP if shown else COLLIDER_GROUP, visual)]
        else:
            for visual in visuals:
                has_back = flat and collides and visual.shape.coordinates is None
                seen = visual.shape.two_sided() if has_back else visual.shape
                share = 0.0 if flat else 1 / len(visuals)  # what has no volume has no weight
                target.on_geom(self._geom(target, visual.name, seen, VISUAL_GROUP, visual), share)
            if kind in (Collider.PARTS, Collider.COARSE_PARTS):
                finest = STATIC_TOLERANCE if kind is Collider.COARSE_PARTS else 0.0
                self._concave.append(_Concave(path, target, shape.facing_out(), finest))
            bound = {Collider.BOX: bounding_box, Collider.SPHERE: bounding_sphere}.get(kind, lambda _: solid)
            name = f'{path}/collider' if visuals else path
            simple = kind not in (Collider.PARTS, Collider.COARSE_PARTS, Collider.NONE)
            colliders = [self._geom(target, name, bound(shape), COLLIDER_GROUP)] if simple else []
        for geom in colliders:
            target.on_geom(geom, 1.0)
            if kind is Collider.FALLBACK:
                self._hulls.append((geom.name, solid, prim))

    def finish(self) -> None:
        """Decompose all concave meshes at once, and add the parts; give the warnings that concern no single prim."""
        self._visual_builder.warn_of_missing()
        concave = _merged(self._concave)
        unscaled = [each.shape.unscaled() for each in concave]
        meshes, scales = [(vertices, faces) for vertices, faces, _ in unscaled], [scale for *_, scale in unscaled]
        names, finest = [each.path for each in concave], [each.finest for each in concave]
        for each, parts in zip(concave, decompose(meshes, names, scales, finest), strict=True):
            whole = sum(part.volume for part in parts)
            if not parts:
                self._warnings.add('does not collide, as its faces have no area', each.path)
            for number, part in enumerate(parts):
                name = f'{each.path}/part_{number}'
                geom = self._geom(each.target, name, part_of(each.shape, part), COLLIDER_GROUP)
                each.target.on_geom(geom, part.volume / whole)

    def warn_of_hulls(self, model: mujoco.MjModel) -> None:
        """Warn of meshes whose convex hulls, as which they collide, are far larger; `model`: the compiled spec."""
        for name, shape, prim in self._hulls:
            geom = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name)
            if geom < 0 or not model.geom_contype[geom]:
                continue  # it has no hull
            mesh = int(model.geom_dataid[geom])
            corners = model.mesh_vertadr[mesh] + hull_faces(model, mesh)
            hull = abs(signed_volume(model.mesh_vert[corners].astype(float)))
            if hull > HULL_RATIO * shape.volume:
                ratio = hull / max(shape.volume, 1e-9)
                self._warnings.add(f'collides as its convex hull, which has {ratio:.3g} times its volume', prim)

    def _geom(
        self, target: GeomTarget, name: str, shape: Shape, group: int, visual: Visual | None = None
    ) -> mujoco.MjsGeom:
        frame = target.frame @ Frame(shape.offset, shape.rotation)
        geom = target.body.add_geom(
            name=name,
            type=shape.type,
            size=[*shape.size, 0, 0, 0][:3],
            pos=frame.position,
            quat=to_quat(frame.rotation),
            group=group,
        )
        if visual is not None:
            geom.rgba = visual.rgba
            geom.material = visual.material
        if shape.vertices is not None:
            geom.meshname = self._mesh(name, shape, collides=group != VISUAL_GROUP)
        if group == VISUAL_GROUP:
            geom.contype = geom.conaffinity = 0
        return geom

    def _mesh(self, name: str, shape: Shape, *, collides: bool) -> str:
        """Return the name of the mesh asset of a shape; equal shapes, such as instances, share one."""
        vertices, faces = _rounded(shape), shape.faces
        arrays: dict[str, NDArray[Any]] = {}
        if faces is not None and shape.normals is not None:
            # MuJoCo (4.0) takes the normals of a face from where its vertices are: each vertex needs one normal
            count = len(shape.normals.values)
            used, faces = np.unique(faces.astype(np.int64) * count + shape.normals.index, return_inverse=True)
            vertices, faces = vertices[used // count], faces.reshape(-1, 3)
            arrays['usernormal'] = shape.normals.values[used % count].round(6)
        arrays['uservert'] = vertices
        if (lacking := _LEAST_VERTICES - len(vertices)) > 0:
            arrays = {field: np.pad(values, ((0, lacking), (0, 0)), mode='edge') for field, values in arrays.items()}
        if faces is not None:
            arrays['userface'] = faces.astype(np.int32)
        if shape.coordinates is not None:
            arrays |= {'usertexcoord': shape.coordinates.values, 'userfacetexcoord': shape.coordinates.index}
        key = (
            bytes([collides]),
            *(part for field, array in arrays.items() for part in (field.encode(), array.tobytes())),
        )
        if key not in self._meshes:
            mesh = self._spec.add_mesh(name=name, **{field: array.ravel() for field, array in arrays.items()})
            convex = collides or shape.faces is None
            mesh.inertia = mjtMeshInertia.mjMESH_INERTIA_CONVEX if convex else mjtMeshInertia.mjMESH_INERTIA_SHELL
            self._meshes[key] = name
        return self._meshes[key]


def _merged(concave: list[_Concave]) -> list[_Concave]:
    """Return the same with coarse meshes of one collider merged, as long as they need not be simplified for it."""
    groups: dict[tuple[str, str], list[_Concave]] = {}
    for each in concave:
        merger = each.target.merger
        key = (each.path if merger is None or not each.finest else merger.path, each.target.body.name)
        groups.setdefault(key, []).append(each)
    found: list[_Concave] = []
    for group in groups.values():
        triangles = sum(len(each.shape.faces) for each in group if each.shape.faces is not None)
        found += [_together(group)] if 1 < len(group) and triangles <= MAX_TRIANGLES else group
    return found


def _together(group: list[_Concave]) -> _Concave:
    """Return meshes that are one collider as one mesh, in the frame of the prim that makes them so."""
    target = group[0].target
    assert target.merger is not None
    rotation, stretch = polar(target.merger.linear)
    points: list[Array] = []
    faces: list[NDArray[np.int32]] = []
    for each in group:
        shape, merger = each.shape, each.target.merger
        assert shape.points is not None and shape.faces is not None and merger is not None
        faces.append(shape.faces + sum(map(len, points)))
        points.append(shape.points @ merger.relative[:3, :3].T + merger.relative[:3, 3])
    local = np.concatenate(points)
    whole = Shape(
        mjtGeom.mjGEOM_MESH,
        rotation,
        vertices=local @ stretch,
        faces=np.concatenate(faces),
        points=local,
        stretch=stretch,
    )
    return replace(group[0], path=target.merger.path, target=replace(target, frame=target.merger.frame), shape=whole)


def _rounded(shape: Shape) -> Array:
    """Return vertices of a mesh without the noise that instances differ by, and without negative zeros."""
    assert shape.vertices is not None
    return shape.vertices.round(7) + 0.0
