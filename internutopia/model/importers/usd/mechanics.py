"""Mechanics of a stage, its bodies and joints: put into a spec before the geometry, finished after that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from internutopia.model.importers import FileWarnings
from internutopia.model.importers.transforms import Frame, polar
from internutopia.model.importers.usd.collisions import CollisionFilter, apply_materials
from internutopia.model.importers.usd.engine_schemas import (
    PhysxPrims,
    add_actuators,
    collides_with_itself,
    warn_of_unread,
)
from internutopia.model.importers.usd.joint_prims import WORLD, read_joint
from internutopia.model.importers.usd.rigid_bodies import (
    GivenMass,
    PhysicsReader,
    check_mass,
    given_mass,
    weigh,
    weigh_shapeless,
)
from internutopia.model.importers.usd.stage_transforms import StageTransforms
from internutopia.model.importers.usd.trees import TreeBuilder, add_drives, add_loop_joint, add_mimics, spanning_forest
from internutopia.model.importers.usd.values import value

if TYPE_CHECKING:
    from pxr import Usd

    Collider = tuple[Usd.Prim, mujoco.MjsGeom]

Trees = list[list[str]]
"""Paths of the bodies of some trees."""

_UNREAD = ('physics:velocity', 'physics:angularVelocity')
_ITERATIONS = (  # of PhysX's solver, for a body, articulation or scene: at least so many
    'physxRigidBody:solverPositionIterationCount',
    'physxArticulation:solverPositionIterationCount',
    'physxScene:minPositionIterationCount',
)
EARTH_GRAVITY = 9.81  # [m/s2], where a physics scene gives a direction only


class Mechanics:
    """Bodies and joints of a stage in a spec.

    Attributes:
        elements: the bodies in the spec by the path of their prim; that of the world is `WORLD`.
        frames: where the bodies are in the file, to place geometry on them.
        holders: paths of static prims that joints name as what holds a body (a door frame). In a scene each has a body
            of its own at the origin, for what it holds to pass through it, and it alone.
    """

    def __init__(
        self,
        spec: mujoco.MjSpec,
        found: Sequence[Usd.Prim],
        physics: PhysicsReader,
        transforms: StageTransforms,
        warnings: FileWarnings,
        name_root: str | None,
    ):
        """Add all bodies of the prims that were found.

        With a `name_root`, the path of a prim, bodies and joints are called as their prims, or by their path below it
        where that is not unique; else by their full paths. ValueError naming the prim for what is broken.
        """
        from pxr import UsdPhysics

        self._spec, self._found, self._transforms, self._warnings = spec, found, transforms, warnings
        for prim in found:
            check_mass(prim)
        self._prims = {str(prim.GetPath()): prim for prim in found if physics.body_of(prim) == prim}
        self.frames = {WORLD: Frame()} | {path: transforms.frame(prim) for path, prim in self._prims.items()}
        joints = (read_joint(p, physics, transforms, warnings) for p in found if p.IsA(UsdPhysics.Joint))
        self._joints = [joint for joint in joints if joint is not None]
        self._still = {path for path, prim in self._prims.items() if physics.is_kinematic(prim)}
        roots = [path for path, prim in self._prims.items() if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
        self._links = spanning_forest(list(self._prims), roots, self._still, self._joints)
        names = _names(self._prims, name_root) | _names([joint.path for joint in self._joints], name_root)
        self._builder = TreeBuilder(spec, names, self.frames, warnings)
        self.elements = {WORLD: spec.worldbody}
        for link in self._links:
            body = self.elements[link.body] = self._builder.add_link(link, floats=link.body not in self._still)
            if value(self._prims[link.body], 'physxRigidBody:disableGravity'):
                body.gravcomp = 1.0
            for name in _UNREAD:
                if np.any(value(self._prims[link.body], name) or 0.0):
                    warnings.add(f'{name} is not read', link.body)
        self.holders: set[str] = set()
        if name_root is None:  # of a robot, all bodies are links
            # static prims that do not contain the body that they hold
            self.holders = {
                joint.holder
                for joint in self._joints
                if joint.holder and not any(body.startswith(joint.holder.rstrip('/') + '/') for body in joint.bodies)
            }
        for path in sorted(self.holders):
            self.elements[path], self.frames[path] = spec.worldbody.add_body(name=path), Frame()
        self._names = names | {path: path for path in self.holders}
        spec.compiler.degree = False
        self._set_gravity()
        iterations = [value(prim, name) or 0 for prim in found for name in _ITERATIONS]
        spec.option.iterations = max(spec.option.iterations, *iterations)

    def weigh_shapeless(self) -> None:
        """Give masses to bodies whose geoms have none, which would not compile without."""
        for link in self._links:
            body, prim = self.elements[link.body], self._prims[link.body]
            if not _has_weight(body):
                moves = bool(body.joints) and not self._carries(link.body)
                weigh_shapeless(body, self._given(link.body), moves, self._warnings, prim)

    def finish(self, colliders: Sequence[Collider], model: mujoco.MjModel) -> None:
        """Add all that needs the geometry: masses as MassAPI has them, contacts, constraints and drives.

        `model`: the spec compiled as it is now, without masses that bodies are given.
        """
        from pxr import UsdPhysics

        for link in self._links:
            given = self._given(link.body)
            if given and _has_weight(self.elements[link.body]):
                weigh(self.elements[link.body], given, model)
        roots = [str(prim.GetPath()) for prim in self._found if prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
        articulations = {root: self._articulated(root) for root in roots}
        self._filter(colliders, articulations)
        apply_materials(self._spec, colliders, self._warnings)
        in_tree = {joint.path for link in self._links for joint in link.joints}
        for joint in self._joints:
            if joint.path not in in_tree:
                if all(body == WORLD or body in self._still for body in joint.bodies):
                    self._warnings.add('joint between bodies that do not move', joint.prim)
                else:
                    add_loop_joint(self._spec, self._builder, joint, self._warnings)
        add_mimics(self._spec, self._builder, self._joints, self._warnings)
        add_drives(self._spec, self._builder, self._joints)
        names: dict[str, list[str]] = {}
        for (path, *_), (name, _) in self._builder.joints.items():
            names.setdefault(path, []).append(name)
        add_actuators(self._spec, names, self._found, self._warnings)
        self._add_physx_attributes(colliders, articulations)
        warn_of_unread(self._found, self._warnings)
        if self._spec.actuators:
            self._spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # stiff drives stay stable

    def _given(self, path: str) -> GivenMass:
        return given_mass(self._prims[path], self.frames[path], self._transforms, self._warnings)

    def _carries(self, path: str) -> bool:
        """Return True if a body, or one fixed to it, has a mass."""
        fixed = [link.body for link in self._links if link.parent == path and not self.elements[link.body].joints]
        return any(_has_weight(self.elements[b]) or self._given(b).mass is not None or self._carries(b) for b in fixed)

    def _set_gravity(self) -> None:
        from pxr import UsdPhysics

        scene = next((prim for prim in self._found if prim.IsA(UsdPhysics.Scene)), None)
        if scene is None:
            return
        magnitude = value(scene, 'physics:gravityMagnitude')
        magnitude = magnitude * self._transforms.unit if np.isfinite(magnitude) else EARTH_GRAVITY
        direction = np.array(value(scene, 'physics:gravityDirection'), float)
        if not np.isfinite([*direction, magnitude]).all():
            raise ValueError(f'{scene.GetPath()}: gravity must be finite')
        if self._transforms.raw_lengths:
            magnitude = EARTH_GRAVITY  # it is an acceleration in a unit that does not count
        if direction.any():
            direction = polar(self._transforms.units[:3, :3])[0] @ direction / np.linalg.norm(direction)
        else:
            direction = np.array([0.0, 0.0, -1.0])
        self._spec.option.gravity = magnitude * direction

    def _add_physx_attributes(self, colliders: Sequence[Collider], articulations: Mapping[str, Trees]) -> None:
        transforms, stage = self._transforms, self._found[0].GetStage()
        attributes = PhysxPrims(transforms.metres, transforms.kilograms, self._warnings)
        for path, prim in self._prims.items():
            attributes.read(prim, 'physxRigidBody', self._names[path])
        for prim, geom in colliders:
            attributes.read(prim, 'physxCollision', geom.name)
            attributes.read_material(prim, geom.name)
        for root, trees in articulations.items():
            for tree in trees:
                attributes.read(stage.GetPrimAtPath(root), 'physxArticulation', self._names[tree[0]])
        for (path, _, turns), (name, _) in self._builder.joints.items():
            attributes.read(stage.GetPrimAtPath(path), 'physxJoint', name, lengths=not turns)
        attributes.add_to(self._spec)

    def _filter(self, colliders: Sequence[Collider], articulations: Mapping[str, Trees]) -> None:
        bodies = {path: self._names[path] for path in (*self._prims, *self.holders)}
        contacts = CollisionFilter(self._spec, colliders, bodies, self._warnings)
        for root, trees in articulations.items():
            prim = self._found[0].GetStage().GetPrimAtPath(root)
            if not collides_with_itself(prim):
                for tree in trees:
                    contacts.exclude_links(tree, articulation=True)
        for joint in self._joints:  # MuJoCo does that only where the parent is not fixed to the world
            ends = [body or joint.holder for body in joint.bodies]
            if all(end in bodies for end in ends) and not value(joint.prim, 'physics:collisionEnabled'):
                contacts.exclude_links(ends)
        links = {root: [path for tree in trees for path in tree] for root, trees in articulations.items()}
        contacts.add_pairs(self._found, links)
        contacts.add_groups(self._found)
        contacts.apply()

    def _articulated(self, root: str) -> Trees:
        """Return the body paths of the trees at an articulation's root: a body, joint, or prim above either."""
        tops: dict[str, str] = {}
        for link in self._links:
            tops[link.body] = tops.get(link.parent, link.body)
        marked = {tops[path] for path in tops if path == root or path.startswith(root + '/')}
        for joint in self._joints:
            if joint.path == root:
                marked |= {tops[body] for body in joint.bodies if body != WORLD}
        return [[path for path, top in tops.items() if top == mark] for mark in sorted(marked)]


def _has_weight(body: mujoco.MjsBody) -> bool:
    """Return True if a geom of a body has a mass by itself."""
    return any(geom.mass != 0 for geom in body.geoms)  # NaN: what its volume and density come to


def _names(paths: Iterable[str], name_root: str | None) -> dict[str, str]:
    """Return names of bodies or joints, by path; see `Mechanics`."""
    if name_root is None:
        return {path: path for path in paths}
    short = [path.rsplit('/', 1)[1] for path in paths]
    return {
        path: name if short.count(name) == 1 and name != 'world' else path.removeprefix(name_root).lstrip('/') or name
        for path, name in zip(paths, short, strict=True)
    }
