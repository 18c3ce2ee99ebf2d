"""A stage of static scenery and single rigid bodies -> `MjSpec`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtMeshInertia

from internutopia.core.scene.usd.bodies import PhysicsReader
from internutopia.core.scene.usd.linear import Array, polar, to_quat
from internutopia.core.scene.usd.looks import add_light, color
from internutopia.core.scene.usd.shapes import SHAPES, Shape, enclosed_volume, shape_of
from internutopia.core.scene.usd.stage import prims, unit_transform
from internutopia.core.util import log

if TYPE_CHECKING:
    from pxr import Usd

VISUAL_GROUP, HIDDEN_GROUP = 2, 3
HULL_RATIO = 1.2
"""A mesh whose convex hull has more than this many times its volume is reported as concave."""


def build(path: Path, stage: Usd.Stage) -> mujoco.MjSpec:
    """The spec of a stage that was read from `path`. ValueError naming the prim."""
    return _Builder(path, stage).build()


@dataclass
class _Body:
    """A body under construction: its frame in the world, its geoms and which of them collide."""

    element: mujoco.MjsBody
    origin: Array
    rotation: Array
    prim: Usd.Prim | None = None
    geoms: list[mujoco.MjsGeom] = field(default_factory=list)


class _Builder:
    def __init__(self, path: Path, stage: Usd.Stage):
        from pxr import Usd, UsdGeom

        self._path = path
        self._stage = stage
        self._spec = mujoco.MjSpec()
        self._spec.modelname = path.stem
        self._physics = PhysicsReader(stage)
        self._xforms = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())
        self._units = unit_transform(stage)
        self._bodies = {'': _Body(self._spec.worldbody, np.zeros(3), np.eye(3))}
        self._meshes: dict[bytes, str] = {}
        self._volumes: dict[str, float] = {}  # of the meshes that collide, by name

    def build(self) -> mujoco.MjSpec:
        found = list(prims(self._stage))
        unknown: Counter[str] = Counter()
        implicit = not any(self._physics.collides(prim) is not None for prim in found)
        for prim in found:
            self._physics.check_static(self._path, prim)
            kind = str(prim.GetTypeName())
            if kind in ('DistantLight', 'DomeLight'):
                add_light(self._spec, prim, polar(self._matrix(prim)[:3, :3])[0])
            elif kind in SHAPES:
                self._add_geometry(prim, implicit)
            elif _is_geometry(prim):
                unknown[kind] += 1
        if unknown:
            names = ', '.join(f'{count} {kind}' for kind, count in sorted(unknown.items()))
            log.warning('%s: left out what cannot be read yet: %s', self._path, names)
        self._finish()
        return self._spec

    def _add_geometry(self, prim: Usd.Prim, implicit: bool) -> None:
        """Add a geometry prim to its body; `implicit`: the stage names no colliders, so all that shows collides."""
        shown = _is_shown(prim)
        collides = shown if implicit else bool(self._physics.collides(prim))
        if not (shown or collides):
            return
        matrix = self._matrix(prim)
        if np.linalg.matrix_rank(matrix[:3, :3]) < 3:
            log.warning('%s: %s: left out, its scale is zero along an axis', self._path, prim.GetPath())
            return
        try:
            shape = shape_of(prim, matrix[:3, :3])
        except ValueError as error:
            raise ValueError(f'{self._path}: {prim.GetPath()}: {error}') from error
        if shape is None:
            return
        body = self._body_of(prim)
        if _is_too_thin(shape, collides=collides, implicit=implicit, moves=body.prim is not None):
            shape = shape.thickened()
        rotation = body.rotation.T @ shape.rotation
        geom = body.element.add_geom(
            name=str(prim.GetPath()),
            type=shape.type,
            size=[*shape.size, 0, 0, 0][:3],
            pos=body.rotation.T @ (matrix[:3, 3] + shape.offset - body.origin),
            quat=to_quat(rotation),
            rgba=color(prim),
            group=HIDDEN_GROUP if not shown else 0 if collides else VISUAL_GROUP,
        )
        if shape.vertices is not None:
            geom.meshname = self._mesh(str(prim.GetPath()), shape, collides)
        if not collides:
            geom.contype = geom.conaffinity = 0
        if body.prim is not None:
            geom.density = self._physics.density(prim, body.prim)
            geom.mass = self._physics.mass(prim) or np.nan
        body.geoms.append(geom)

    def _matrix(self, prim: Usd.Prim) -> Array:
        """`(4, 4)` transform from a prim to the world, in metres with z up; acts on columns."""
        return self._units @ np.array(self._xforms.GetLocalToWorldTransform(prim)).T

    def _body_of(self, prim: Usd.Prim) -> _Body:
        """The body that a geometry prim belongs to, made when it is first needed."""
        owner = self._physics.body_of(prim)
        name = str(owner.GetPath()) if owner else ''
        if owner and name not in self._bodies:
            matrix = self._matrix(owner)
            rotation = polar(matrix[:3, :3])[0]
            element = self._spec.worldbody.add_body(name=name, pos=matrix[:3, 3], quat=to_quat(rotation))
            if not self._physics.is_kinematic(owner):
                element.add_freejoint(name=name)
            self._bodies[name] = _Body(element, matrix[:3, 3], rotation, owner)
        return self._bodies[name]

    def _mesh(self, name: str, shape: Shape, collides: bool) -> str:
        """Name of the mesh asset of a shape; equal shapes, such as instances, share one."""
        assert shape.vertices is not None
        vertices = shape.vertices.round(7) + 0.0  # what instances differ by is noise; no negative zeros
        faces = np.zeros((0, 3), np.int32) if shape.faces is None else shape.faces
        key = vertices.tobytes() + faces.tobytes() + bytes([collides])
        if key not in self._meshes:
            mesh = self._spec.add_mesh(name=name, uservert=vertices.ravel(), userface=faces.ravel())
            convex = collides or shape.faces is None
            mesh.inertia = mjtMeshInertia.mjMESH_INERTIA_CONVEX if convex else mjtMeshInertia.mjMESH_INERTIA_SHELL
            self._meshes[key] = name
            if collides:
                self._volumes[name] = shape.volume
        return self._meshes[key]

    def _finish(self) -> None:
        """Compile once, to find errors, concave meshes, and the masses that densities have led to."""
        for body in self._bodies.values():
            if any(geom.contype for geom in body.geoms):
                for geom in body.geoms:
                    geom.mass = geom.mass if geom.contype else 0.0
        try:
            model = self._spec.copy().compile()
        except ValueError as error:
            raise ValueError(f'{self._path}: {error}') from error
        for name, volume in self._volumes.items():
            hull = _hull_volume(model, model.mesh(name).id)
            if hull > HULL_RATIO * volume:
                log.warning(
                    '%s: %s: this concave mesh collides as its convex hull, which has %.3g times its volume',
                    self._path, name, hull / max(volume, 1e-9),
                )  # fmt: skip
        for name, body in self._bodies.items():
            mass = self._physics.mass(body.prim) if body.prim is not None else None
            if mass:
                factor = mass / float(model.body(name).mass[0])
                for geom in body.geoms:
                    geom.density *= factor
                    geom.mass *= factor


def _is_shown(prim: Usd.Prim) -> bool:
    from pxr import Usd, UsdGeom

    image = UsdGeom.Imageable(prim)
    visible = image.ComputeVisibility(Usd.TimeCode.EarliestTime()) != UsdGeom.Tokens.invisible
    return visible and image.ComputePurpose() in (UsdGeom.Tokens.default_, UsdGeom.Tokens.render)


def _is_too_thin(shape: Shape, *, collides: bool, implicit: bool, moves: bool) -> bool:
    """Whether MuJoCo needs a shape to have a thickness."""
    if shape.type == mjtGeom.mjGEOM_PLANE:  # collides as if it were infinite, and must not move
        return moves or (collides and implicit and shape.rotation[2, 2] < 0.99)
    return shape.vertices is not None and shape.is_flat() and (collides or len(shape.vertices) < 4)


def _is_geometry(prim: Usd.Prim) -> bool:
    from pxr import UsdGeom

    return prim.IsA(UsdGeom.Gprim) or prim.IsA(UsdGeom.PointInstancer)


def _hull_volume(model: mujoco.MjModel, mesh: int) -> float:
    """Volume [m3] of a mesh's convex hull, out of the hull's graph as MuJoCo documents it."""
    graph = model.mesh_graph[model.mesh_graphadr[mesh] :]
    vertices, faces = graph[:2]
    first = 2 + 3 * vertices + 3 * faces  # skip addresses and ids of vertices, and the edges
    corners = graph[first : first + 3 * faces].reshape(-1, 3)
    return enclosed_volume(model.mesh_vert[model.mesh_vertadr[mesh] + corners].astype(float))
