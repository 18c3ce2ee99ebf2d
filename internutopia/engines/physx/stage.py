"""Stage writer: the USD text of one env for PhysX, from the model that its scene compiles to.

Bodies and joints stand as in the model's reference configuration; states, gains and masses are written by tensors
afterwards. `@` is the path of the env.

- `scene`: the physics scene, if each env has its own. `w<body>`: colliders that are fixed to the world.
- `r<body>`: standalone bodies. `a<tree>`: articulations, with links `b<body>`, joints `j<joint>` and their root,
  `b<body>` or the joint `root` that fixes it to the world.
- `e<k>`: joints that close loops.
- Bodies hold their colliders `g<geom>` in scopes `w<body>`, one for each body of the model.

Where all envs are in one physics scene, which a GPU needs, groups of colliders keep them apart: each of them touches
those groups only that it names, and they are of its own env. Level planes, which have no end, are of all envs there,
at the path `$`: a plane in each env would be near the bodies of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import mujoco
import numpy as np

from internutopia.engines.physx.bodies import Articulation, Floats, Movers
from internutopia.engines.physx.filters import Filters
from internutopia.engines.physx.force_sensors import sensed_bodies
from internutopia.engines.physx.materials import Materials, torsional_radius
from internutopia.engines.physx.prims import (
    ARTICULATION,
    BALL,
    BODY,
    REPORT,
    SLIDE,
    attribute_text,
    ball_joint_text,
    drives_text,
    joint_end_text,
    joint_turn,
    joint_unit,
    mass_text,
    pose_text,
    prim_text,
    scene_text,
)
from internutopia.engines.physx.shapes import shape_scale, shape_text
from internutopia.engines.physx.tensors import COMMON, absolute
from internutopia.model.physx_attributes import Attributes, physx_attributes
from internutopia.util.rotations import quat_multiply, quat_rotate

DUMMY_SHARE = 1e-3
"""Mass of the links between several joints of one body, of that of the body."""

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
_UP = np.array([0.0, 0.0, 1.0])
_LEVEL = 1e-9
_TORSION = 'physxCollision:minTorsionalPatchRadius'
_FAR = 1e7  # [rad, m] limit of joints without one: PhysX counts turns of a hinge only if it has limits


@dataclass(frozen=True)
class StageLayout:
    """USD text of one env, in which `@` is its path, and paths below it of what tensors read and write.

    The text has no physics scene if the env is to share one. `common` is that of prims at `$`, which all envs have in
    common; paths of colliders there begin with it.
    """

    text: str
    common: str
    movers: Movers
    roots: tuple[str, ...]  # of the articulations
    colliders: dict[int, str]  # by geom

    def geoms(self, movers: set[int]) -> list[int]:
        """Return the colliders of some bodies that move."""
        owner = self.movers.of[self.movers.model.geom_bodyid]
        return [geom for geom in self.colliders if owner[geom] and owner[geom] in movers]


def _path(movers: Movers, mover: int) -> str:
    """Return the path of a mover below its env."""
    for index, tree in enumerate(movers.articulations):
        if mover in tree.links or (mover and mover == tree.root):
            return f'a{index}/b{mover}'
    return f'r{mover}' if mover else ''


def write_stage(model: mujoco.MjModel, shared_scene: bool = False) -> StageLayout:
    """Return the stage of a model, with a physics scene or for one that it shares with other envs.

    NotImplementedError for what PhysX cannot do.
    """
    return _Writer(model, shared_scene).layout()


class _Writer:
    def __init__(self, model: mujoco.MjModel, shared_scene: bool):
        self._model = model
        self._shared = shared_scene
        self._owner = '' if shared_scene else 'rel physics:simulationOwner = <@/scene>\n'
        self._movers = Movers(model)
        self._filters = Filters(self._movers)
        self._sensed = sensed_bodies(model)
        self._passing: dict[int, list[int]] = {}
        self._common: set[int] = set()  # geoms
        self._colliders: dict[int, str] = {}
        self._authored = physx_attributes(model)
        self._materials = Materials(model, self._authored)
        self._paths = {mover: _path(self._movers, mover) for mover in self._movers.parents}

    def layout(self) -> StageLayout:
        movers = self._movers
        selfless = [
            self._filters.none_inside([b for b in range(1, self._model.nbody) if movers.of[b] in self._of(tree)])
            for tree in movers.articulations
        ]
        self._find_passing(selfless)
        self._find_common()
        parts = ['' if self._shared else scene_text(self._model, 'scene'), self._world()]
        parts += [self._standalone(mover, kinematic=False) for mover in movers.free]
        parts += [self._standalone(mover, kinematic=True) for mover in movers.kinematic]
        parts += [self._articulation(i, tree, selfless[i]) for i, tree in enumerate(movers.articulations)]
        parts += self._loops()
        common = [self._collider(geom, 0, COMMON, []) for geom in sorted(self._common)]
        for text, root in ((parts, '@'), (common, COMMON)):
            text += [*self._groups(root), *self._materials.prims(root)]
        roots = tuple(
            f'a{i}/root' if tree.fixed else f'a{i}/b{tree.root}' for i, tree in enumerate(movers.articulations)
        )
        return StageLayout(''.join(parts), ''.join(common), movers, roots, self._colliders)

    @staticmethod
    def _of(tree: Articulation) -> set[int]:
        return {tree.root, *tree.links} - {0}

    def _find_passing(self, selfless: list[bool]) -> None:
        """Collect the pairs of bodies that pass through each other, except for those that PhysX lets pass anyway."""
        tree_of = {mover: i for i, tree in enumerate(self._movers.articulations) for mover in self._of(tree)}
        for one, other in self._filters.passing():
            first, second = int(self._movers.of[one]), int(self._movers.of[other])
            tree = tree_of.get(first)
            if tree is not None and tree == tree_of.get(second) and (selfless[tree] or self._are_joined(first, second)):
                continue
            self._passing.setdefault(one, []).append(other)

    def _find_common(self) -> None:
        """Collect the planes that envs can have in common: in a shared scene they are the same wherever an env stands.

        Those are left out on which contacts are measured, or that some bodies pass through.
        """
        if not self._shared:
            return
        model, movers = self._model, self._movers
        apart = {*self._sensed, *self._passing, *(body for others in self._passing.values() for body in others)}
        for body, geoms in self._filters.colliders.items():
            for geom in geoms if movers.of[body] == 0 and body not in apart else ():
                upwards = quat_rotate(movers.geom_orientations[geom], _UP)[2]
                if model.geom_type[geom] == _PLANE and upwards > 1 - _LEVEL:
                    self._common.add(geom)

    def _are_joined(self, first: int, second: int) -> bool:
        """Return True if one joint connects two movers, so that PhysX lets them pass."""
        for child, parent in ((first, second), (second, first)):
            if self._movers.parents.get(child) == parent and len(self._movers.joints(child)) <= 1:
                return True
        return False

    def _world(self) -> str:
        bodies = [body for body in self._filters.colliders if self._movers.of[body] == 0]
        return ''.join(self._scope(body, 0) for body in bodies)

    def _standalone(self, mover: int, kinematic: bool) -> str:
        extra = 'bool physics:kinematicEnabled = true\n' if kinematic else ''
        return self._body(f'r{mover}', mover, extra)

    def _articulation(self, index: int, tree: Articulation, selfless: bool) -> str:
        path = f'@/a{index}'
        schemas = '"PhysicsArticulationRootAPI", "PhysxArticulationAPI"'
        top = tree.root or tree.links[0]
        settings = self._attributes('physxArticulation', self._model.body(top).name, ARTICULATION)
        settings += f'bool physxArticulation:enabledSelfCollisions = {str(not selfless).lower()}\n'
        parts: list[str] = []
        if tree.root:
            own = ('', '') if tree.fixed else (schemas, settings)
            parts.append(self._body(f'b{tree.root}', tree.root, own[1], own[0]))
        else:
            parts.append(
                prim_text('Xform', 'base', '"PhysicsRigidBodyAPI", "PhysicsMassAPI"', f'{self._owner}{mass_text(1.0)}')
            )
        if tree.fixed:
            base = f'b{tree.root}' if tree.root else 'base'
            parts.append(
                prim_text('PhysicsFixedJoint', 'root', schemas, f'rel physics:body1 = <{path}/{base}>\n{settings}')
            )
        for link in tree.links:
            parent = self._movers.parents[link]
            above = f'b{parent}' if parent else 'base'
            parts += self._joints(path, link, parent, above)
            parts.append(self._body(f'b{link}', link, ''))
        return prim_text('Xform', f'a{index}', '', ''.join(parts))

    def _joints(self, path: str, link: int, parent: int, above: str) -> Iterator[str]:
        """Yield the joints of a link, and the links between them, of a small mass."""
        joints = self._movers.joints(link)
        if not joints:
            yield self._fixed(f'{path}/{above}', f'{path}/b{link}', link, parent)
            return
        names = [above, *(f'd{joint}' for joint in joints[:-1]), f'b{link}']
        mass = float(max(self._model.body_subtreemass[link], 1e-6)) * DUMMY_SHARE
        position, orientation = self._pose(link)
        for name in names[1:-1]:
            yield prim_text(
                'Xform',
                name,
                '"PhysicsRigidBodyAPI", "PhysicsMassAPI", "PhysxRigidBodyAPI"',
                f'{pose_text(position, orientation)}{self._owner}{attribute_text(BODY)}{mass_text(mass)}',
            )
        for k, (joint, (one, other)) in enumerate(zip(joints, pairwise(names), strict=True)):
            yield self._joint(joint, f'{path}/{one}', f'{path}/{other}', parent if k == 0 else link)

    def _joint(self, joint: int, body0: str, body1: str, parent: int) -> str:
        model, movers = self._model, self._movers
        link = int(model.jnt_bodyid[joint])
        turn = joint_turn(model, joint)
        anchor = movers.positions[link] + quat_rotate(movers.orientations[link], model.jnt_pos[joint])
        place, direction = anchor, quat_multiply(movers.orientations[link], turn)
        if parent:
            place, direction = movers.local(parent, anchor, direction)
        text = joint_end_text(0, body0, place, direction) + joint_end_text(1, body1, model.jnt_pos[joint], turn)
        if model.jnt_type[joint] == BALL:
            return ball_joint_text(f'j{joint}', text)
        slides = model.jnt_type[joint] == SLIDE
        kind, axis = ('Prismatic', 'linear') if slides else ('Revolute', 'angular')
        text += f'uniform token physics:axis = "X"\n{drives_text(axis)}'
        low, high = self._limits(joint)
        unit = joint_unit(model, joint)
        text += f'float physics:lowerLimit = {low / unit:.9g}\nfloat physics:upperLimit = {high / unit:.9g}\n'
        speed = self._authored.get(model.joint(joint).name, {}).get('physxJoint:maxJointVelocity')
        if speed is not None:
            text += f'float physxJointAxis:{axis}:maxJointVelocity = {speed:.9g}\n'
        schemas = f'"PhysicsDriveAPI:{axis}", "PhysxJointAxisAPI:{axis}"'
        if (mimic := movers.constraints.mimics.get(joint)) is not None:
            schemas += ', "NewtonMimicAPI"'
            ratio = mimic.ratio * joint_unit(model, mimic.leader) / unit
            text += (
                f'rel newton:mimicJoint = <{body1.rpartition("/")[0]}/j{mimic.leader}>\n'
                f'float newton:mimicCoef0 = {mimic.offset / unit:.9g}\nfloat newton:mimicCoef1 = {ratio:.9g}\n'
            )
        return prim_text(f'Physics{kind}Joint', f'j{joint}', schemas, text)

    def _fixed(self, body0: str, body1: str, link: int, parent: int) -> str:
        """Return the joint of a link that is fixed to its parent, to measure what it takes."""
        place, direction = self._movers.local(parent, *self._pose(link))
        text = joint_end_text(0, body0, place, direction) + f'rel physics:body1 = <{body1}>\n'
        return prim_text('PhysicsFixedJoint', f'f{link}', '', text)

    def _limits(self, joint: int) -> tuple[float, float]:
        """Return the range of a joint, from its reference [rad, m]."""
        model, locked = self._model, self._movers.constraints.locked
        if joint in locked:
            return locked[joint], locked[joint]
        if not model.jnt_limited[joint]:
            return -_FAR, _FAR
        low, high = (model.jnt_range[joint] - model.qpos0[model.jnt_qposadr[joint]]).tolist()
        return low, high

    def _loops(self) -> Iterator[str]:
        """Yield the joints that close loops, none where nothing moves."""
        for i, loop in enumerate(self._movers.constraints.loops):
            text = 'bool physics:excludeFromArticulation = true\nbool physics:collisionEnabled = true\n'
            movers = [int(self._movers.of[body]) for body in loop.bodies]
            if movers[0] == movers[1]:
                continue
            for end, (body, mover, (place, turn)) in enumerate(zip(loop.bodies, movers, loop.frames, strict=True)):
                position, orientation = self._pose(body)
                position, orientation = position + quat_rotate(orientation, place), quat_multiply(orientation, turn)
                if mover:
                    position, orientation = self._movers.local(mover, position, orientation)
                path = f'@/{self._paths[mover]}' if mover else '@'
                text += joint_end_text(end, path, position, orientation)
            yield prim_text('PhysicsFixedJoint' if loop.fixed else 'PhysicsSphericalJoint', f'e{i}', '', text)

    def _body(self, name: str, mover: int, extra: str, schemas: str = '') -> str:
        model, of = self._model, self._movers.of
        own = np.flatnonzero(of == mover).tolist()
        position, orientation = self._pose(mover)
        applied = ['"PhysicsRigidBodyAPI"', '"PhysicsMassAPI"', '"PhysxRigidBodyAPI"', *([schemas] if schemas else [])]
        if any(body in self._sensed for body in own):
            applied.append('"PhysxContactReportAPI"')
            extra += REPORT
        if (model.body_gravcomp[own] == 1).all():
            extra += 'bool physxRigidBody:disableGravity = true\n'
        mass = float(model.body_mass[own].sum())
        scopes = ''.join(self._scope(b, mover) for b in own if b in self._filters.colliders)
        extra += self._attributes('physxRigidBody', model.body(mover).name, BODY)
        text = f'{pose_text(position, orientation)}{self._owner}{mass_text(mass or 1.0)}{extra}{scopes}'
        return prim_text('Xform', name, ', '.join(applied), text)

    def _scope(self, body: int, mover: int) -> str:
        """Return the colliders of one body of the model, in the frame of the mover."""
        colliders = self._filters.colliders
        home = self._home(body)
        others = [
            f'<@/{self._home(other)}/g{geom}>' for other in self._passing.get(body, ()) for geom in colliders[other]
        ]
        parts = [self._collider(geom, mover, home, others) for geom in colliders[body] if geom not in self._common]
        return prim_text('Xform', f'w{body}', '', ''.join(parts))

    def _home(self, body: int) -> str:
        mover = int(self._movers.of[body])
        return f'{self._paths[mover]}/w{body}' if mover else f'w{body}'

    def _collider(self, geom: int, mover: int, home: str, passing: list[str]) -> str:
        movers = self._movers
        self._colliders[geom] = f'{home}/g{geom}'
        position, orientation = movers.geom_positions[geom], movers.geom_orientations[geom]
        if mover:
            position, orientation = movers.local(mover, position, orientation)
        kind, schemas, text = shape_text(self._model, geom)
        text += pose_text(position, orientation, shape_scale(self._model, geom))
        text += f'rel material:binding:physics = <{self._materials.path(geom, self._root(geom))}>\n'
        schemas = f'"PhysicsCollisionAPI", {schemas}"MaterialBindingAPI"'
        if not mover:
            text += self._owner
        elif self._model.geom_bodyid[geom] in self._sensed:
            schemas += ', "PhysxContactReportAPI"'
            text += REPORT
        patch = {_TORSION: radius} if (radius := torsional_radius(self._model, geom)) else {}
        if own := self._attributes('physxCollision', self._model.geom(geom).name, patch):
            schemas += '' if '"PhysxCollisionAPI"' in schemas else ', "PhysxCollisionAPI"'
            text += own
        if passing:
            schemas += ', "PhysicsFilteredPairsAPI"'
            text += f'rel physics:filteredPairs = [{", ".join(passing)}]\n'
        return prim_text(kind, f'g{geom}', schemas, text)

    def _root(self, geom: int) -> str:
        """Return the path of what a collider belongs to: its env, or what envs have in common."""
        return COMMON if geom in self._common else '@'

    def _groups(self, root: str) -> Iterator[str]:
        """Yield groups of colliders by their bits, if some of these keep any apart or there are other envs' colliders.

        A group names those that its colliders pass through, or in a shared scene those that they touch.
        """
        strangers = {frozenset(pair) for pair in self._filters.strangers()}
        if not strangers and not self._shared:
            return
        members: dict[str, list[str]] = {}
        for geom, path in self._colliders.items():
            name = f'{self._root(geom)}/c{self._filters.bits.index(self._filters.bits_of(geom))}'
            members.setdefault(name, []).append(f'<{absolute(path, "@", COMMON)}>')
        for name, colliders in members.items():
            if not name.startswith(root):
                continue
            others = [] if root == COMMON else list(members)
            apart = [frozenset((int(name[3:]), int(other[3:]))) in strangers for other in others]
            named = [f'<{other}>' for other, passes in zip(others, apart, strict=True) if passes != self._shared]
            text = (
                f'rel collection:colliders:includes = [{", ".join(colliders)}]\n'
                f'rel physics:filteredGroups = [{", ".join(named)}]\n'
            )
            yield prim_text('PhysicsCollisionGroup', name[2:], '"CollectionAPI:colliders"', text)

    def _attributes(self, schema: str, element: str, defaults: Attributes = MappingProxyType({})) -> str:
        """Return attributes of a schema: those that the file of an element has, else defaults."""
        own = self._authored.get(element, {})
        return attribute_text({**defaults, **{name: own[name] for name in own if name.startswith(f'{schema}:')}})

    def _pose(self, body: int) -> tuple[Floats, Floats]:
        return self._movers.positions[body], self._movers.orientations[body]
