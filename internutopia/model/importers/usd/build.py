"""Build: a stage -> `MjSpec`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from internutopia.model.groups import COLLIDER_GROUP, VISUAL_GROUP
from internutopia.model.importers import FileWarnings, LoadOptions
from internutopia.model.importers.transforms import Array, Frame, polar
from internutopia.model.importers.usd.geoms import Geometry, GeomTarget, Merger
from internutopia.model.importers.usd.lights import LIGHTS, Lights, add_camera, has_field_of_view
from internutopia.model.importers.usd.mechanics import Mechanics
from internutopia.model.importers.usd.rigid_bodies import PhysicsReader
from internutopia.model.importers.usd.semantics import add_labels
from internutopia.model.importers.usd.shapes import SHAPES, shape_of
from internutopia.model.importers.usd.stage_transforms import StageTransforms, prims
from internutopia.model.meshes.mesh_files import fault_of
from internutopia.util.progress import progress_bar

if TYPE_CHECKING:
    from pxr import Usd


def build(
    path: Path, stage: Usd.Stage, transforms: StageTransforms, warnings: FileWarnings, options: LoadOptions
) -> mujoco.MjSpec:
    """Build the spec of a stage read from `path`; what is dropped goes to `warnings`. ValueError naming the prim."""
    return _Builder(path, stage, transforms, warnings, options).build()


@dataclass
class _Body:
    """A body under construction: its frame in the file's world, its geoms and the prims they are of."""

    element: mujoco.MjsBody
    origin: Array
    rotation: Array
    prim: Usd.Prim | None = None
    geoms: list[mujoco.MjsGeom] = field(default_factory=list)
    shapes: list[Usd.Prim] = field(default_factory=list)

    def place(self, matrix: Array) -> Frame:
        """Return where a transform to the world has its origin on the body, and the world's axes on it."""
        return Frame(self.rotation.T @ (matrix[:3, 3] - self.origin), self.rotation.T)


class _Builder:
    def __init__(
        self, path: Path, stage: Usd.Stage, transforms: StageTransforms, warnings: FileWarnings, options: LoadOptions
    ):
        self._warnings = warnings
        self._stage = stage
        self._spec = mujoco.MjSpec()
        self._spec.modelname = path.stem
        self._spec.option.timestep = options.timestep
        self._physics = PhysicsReader(transforms)
        self._transforms = transforms
        self._short_names = options.short_names
        self._bodies: dict[str, _Body] = {}
        self._holders: set[str] = set()
        self._geometry = Geometry(self._spec, warnings)
        self._lights = Lights(self._spec, warnings)

    def build(self) -> mujoco.MjSpec:
        from pxr import UsdGeom

        found = list(prims(self._stage))
        mechanics = self._add_bodies(found)
        implicit = not any(self._physics.collides(prim) is not None for prim in found)
        shapes = [prim for prim in found if str(prim.GetTypeName()) in SHAPES]
        with progress_bar(f'reading {self._spec.modelname}', len(shapes)) as advance:
            for prim in shapes:
                self._add_geometry(prim, implicit)
                advance()
        for prim in found:
            kind = str(prim.GetTypeName())
            if kind in LIGHTS and is_shown(prim):
                self._lights.add(prim, *self._place_of(prim))
            elif kind == 'Camera' and not has_field_of_view(prim):
                self._warnings.add('left out, aperture and focal length of a camera must be positive', prim)
            elif kind == 'Camera':
                add_camera(prim, *self._place_of(prim), self._transforms.metres)
            elif kind not in SHAPES and prim.IsA(UsdGeom.Gprim) and is_shown(prim):
                self._warnings.add(f'{kind} is left out, there is no such shape', prim)
        self._lights.finish()
        self._geometry.finish()
        add_labels(self._spec, found, self._warnings)
        self._finish(mechanics)
        self._check_not_empty(found)
        return self._spec

    def _check_not_empty(self, found: list[Usd.Prim]) -> None:
        """Raise ValueError if nothing is left of the stage, unless it was empty from the start."""
        from pxr import UsdPhysics

        if any(body.geoms for body in self._bodies.values()) or len(self._bodies) > 1:
            return
        if self._spec.lights or self._spec.cameras:
            return
        if warnings := self._warnings.lines():
            raise ValueError(f'nothing in it could be read: {"; ".join(warnings)}')
        if not any(prim.IsA(UsdPhysics.Scene) for prim in found):
            self._warnings.add('it has no shapes, bodies, lights or cameras', '/')

    def _add_bodies(self, found: list[Usd.Prim]) -> Mechanics:
        top = self._stage.GetDefaultPrim()
        name_root = (str(top.GetPath()) if top else '/') if self._short_names else None
        mechanics = Mechanics(self._spec, found, self._physics, self._transforms, self._warnings, name_root)
        self._holders = mechanics.holders
        for path, element in mechanics.elements.items():
            frame = mechanics.frames[path]
            moves = path and path not in mechanics.holders
            prim = self._stage.GetPrimAtPath(path) if moves else None
            self._bodies[path] = _Body(element, frame.position, frame.rotation, prim)
        return mechanics

    def _add_geometry(self, prim: Usd.Prim, implicit: bool) -> None:
        """Add a geometry prim to its body; `implicit`: without colliders in the stage, visible geometry collides."""
        shown = is_shown(prim)
        collides = shown if implicit else bool(self._physics.collides(prim))
        if not (shown or collides):
            return
        try:
            matrix = self._transforms.matrix(prim)
            if np.linalg.matrix_rank(matrix[:3, :3]) < 3:
                raise ValueError('its scale is zero along an axis')
            shape = shape_of(prim, matrix[:3, :3])
        except ValueError as error:
            self._warnings.add(f'left out, {str(error).removeprefix(f"{prim.GetPath()}: ")}', prim)
            return
        if shape is None:
            if not prim.GetChildren():
                self._warnings.add('left out, it has no surface', prim)
            return
        for flaw in shape.flaws:
            self._warnings.add(f'faces are left out, {flaw}', prim)
        if shape.faces is not None and shown:  # USD subdivides meshes without a scheme, too
            scheme = prim.GetAttribute('subdivisionScheme')
            if scheme.HasAuthoredValue() and scheme.Get() != 'none':
                self._warnings.add(f'subdivision {scheme.Get()} is not applied', prim)
        body, physics = self._body_of(prim), self._physics  # not `self`: in a circle, the stage would stay open
        merger = physics.merger(prim) if collides and body.prim is None else None

        def on_geom(geom: mujoco.MjsGeom, share: float) -> None:
            if body.prim is not None:
                geom.density = physics.density(prim, body.prim)
                geom.mass = (physics.mass(prim) or np.nan) * share if share else 0.0
            body.geoms.append(geom)
            body.shapes.append(prim)

        target = GeomTarget(
            body.element,
            body.place(matrix),
            moves=body.prim is not None and not self._physics.is_kinematic(body.prim),
            boundless=not implicit,
            on_geom=on_geom,
            merger=None if merger is None else self._merger(prim, merger, body),
        )
        self._geometry.add(prim, shape, target, shown=shown, collides=collides)

    def _merger(self, mesh: Usd.Prim, prim: Usd.Prim, body: _Body) -> Merger:
        """Return the prim that makes a mesh part of one collider, on a body that does not move."""
        matrix = self._transforms.matrix(prim)
        return Merger(str(prim.GetPath()), body.place(matrix), matrix[:3, :3], self._transforms.relative(mesh, prim))

    def _place_of(self, prim: Usd.Prim) -> tuple[mujoco.MjsBody, Frame]:
        """Return the body that a light or camera is part of, and its pose on that, without its scale."""
        body, matrix = self._body_of(prim), self._transforms.matrix(prim)
        frame = body.place(matrix)
        return body.element, Frame(frame.position, frame.rotation @ polar(matrix[:3, :3])[0])

    def _body_of(self, prim: Usd.Prim) -> _Body:
        owner = self._physics.body_of(prim)
        if owner:
            return self._bodies[str(owner.GetPath())]
        holder = next((path for path in map(str, prim.GetPath().GetAncestorsRange()) if path in self._holders), '')
        return self._bodies[holder]

    def _finish(self, mechanics: Mechanics) -> None:
        """Compile once, to find errors, concave meshes, and the masses that densities lead to; then do the rest."""
        try:
            model = self._compiled(mechanics)
        except ValueError:
            if not self._remove_broken():
                raise
            model = self._compiled(mechanics)
        colliders = [
            (prim, geom)
            for body in self._bodies.values()
            for prim, geom in zip(body.shapes, body.geoms, strict=True)
            if geom.contype
        ]
        mechanics.finish(colliders, model)
        self._geometry.warn_of_hulls(model)

    def _compiled(self, mechanics: Mechanics) -> mujoco.MjModel:
        """Compile the spec; geoms that are only seen have no mass on a body that collides."""
        for body in self._bodies.values():
            if any(geom.contype for geom in body.geoms):
                for geom in body.geoms:
                    geom.mass = geom.mass if geom.contype else 0.0
        mechanics.weigh_shapeless()
        return self._spec.copy().compile()

    def _remove_broken(self) -> bool:
        """Make meshes that MuJoCo cannot compile visual only, or remove them; returns True if there are any."""
        faults = {mesh.name: (mesh, fault) for mesh in self._spec.meshes if (fault := fault_of(mesh))}
        for body in self._bodies.values():
            pairs = list(zip(body.geoms, body.shapes, strict=True))
            body.geoms, body.shapes = [], []
            for geom, prim in pairs:
                if geom.meshname in faults and not self._is_seen(geom, prim, *faults[geom.meshname]):
                    self._spec.delete(geom)
                else:
                    body.geoms.append(geom)
                    body.shapes.append(prim)
        for name, (mesh, _) in faults.items():
            if not any(geom.meshname == name for geom in self._spec.geoms):
                self._spec.delete(mesh)
        return bool(faults)

    def _is_seen(self, geom: mujoco.MjsGeom, prim: Usd.Prim, mesh: mujoco.MjsMesh, fault: str) -> bool:
        """Return True if a geom with a broken mesh can be shown; it no longer collides."""
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        seen = geom.group != COLLIDER_GROUP and not fault_of(mesh)
        remains = seen or geom.group == COLLIDER_GROUP
        self._warnings.add(f'{"collides with nothing" if remains else "left out"}, {fault}', prim)
        geom.contype = geom.conaffinity = 0
        geom.mass, geom.group = 0.0, VISUAL_GROUP
        return seen


def is_shown(prim: Usd.Prim) -> bool:
    """Return True if a prim is visible, no guide, and no proxy with a sibling that is to be rendered."""
    from pxr import Usd, UsdGeom

    image = UsdGeom.Imageable(prim)
    if image.ComputeVisibility(Usd.TimeCode.EarliestTime()) == UsdGeom.Tokens.invisible:
        return False
    purpose = image.ComputePurpose()
    return purpose != UsdGeom.Tokens.guide and (purpose != UsdGeom.Tokens.proxy or not _has_render(prim))


def _has_render(proxy: Usd.Prim) -> bool:
    """Return True if the uppermost prim of a proxy has a sibling of purpose render."""
    from pxr import Usd, UsdGeom

    def purpose(prim: Usd.Prim) -> str:
        return UsdGeom.Imageable(prim).ComputePurpose()

    while purpose(parent := proxy.GetParent()) == UsdGeom.Tokens.proxy:
        proxy = parent
    beside = parent.GetFilteredChildren(Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate))
    return any(purpose(prim) == UsdGeom.Tokens.render for prim in beside)
