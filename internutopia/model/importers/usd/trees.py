"""Trees of joints in a stage, and the constraints between their bodies.

Every body hangs on another one by one joint, on the world, or floats. A joint that would close a loop, and one that is
excluded from articulations, stays over: it becomes a constraint. The pose in which the file has the bodies is the one
of the model's `qpos0`; joint positions count from where the frames of a joint meet, as in USD.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from internutopia.model.drives import add_actuator
from internutopia.model.groups import HINGE_ARM, add_frame_site
from internutopia.model.importers import FileWarnings
from internutopia.model.importers.transforms import Array, Frame, about, euler_xyz, to_quat, twist
from internutopia.model.importers.usd.joint_prims import WORLD, Dof, Joint, unwrapped
from internutopia.model.importers.usd.values import value

FAR = 1e6  # [rad or m], stands for the other limit of a joint that has only one
_APART = 1e-3, 1e-2  # [m], [rad]: how far the frames of a joint may miss each other before that is worth a warning
_KINDS = {True: mujoco.mjtJoint.mjJNT_HINGE, False: mujoco.mjtJoint.mjJNT_SLIDE}


@dataclass(frozen=True)
class Link:
    """A body in a tree: its parent, and the joints between them, the nearest to the parent first; mostly one."""

    body: str
    parent: str = WORLD
    joints: tuple[Joint, ...] = ()


def spanning_forest(
    bodies: Sequence[str], roots: Iterable[str], still: Iterable[str], joints: Sequence[Joint]
) -> list[Link]:
    """Arrange bodies in trees, parents first.

    What hangs on the world or on a `still` body (moved by nothing) is rooted there. Another tree has its root at one of
    `roots`, else at its first body that is the second one of no joint. Hinges and slides between the same two bodies
    act in sequence, as in files that come from MJCF.

    Args:
        bodies: Paths of all bodies.
        roots: Paths of those that are marked as the root of an articulation.
        still: Paths of kinematic bodies.
        joints: All joints; those that cannot be part of a tree are passed over.
    """
    edges: dict[str, dict[str, list[Joint]]] = defaultdict(lambda: defaultdict(list))
    usable = [joint for joint in joints if not joint.excluded and joint.distance is None]
    for joint in usable:
        first, second = joint.bodies
        edges[first][second].append(joint)
        edges[second][first].append(joint)
    links = {body: Link(body) for body in still}

    def grow(start: str) -> None:
        pending = deque([start])
        while pending:
            parent = pending.popleft()
            for child, between in list(edges[parent].items()):
                if child != WORLD and child not in links:
                    in_series = all(len(joint.dofs) == 1 and not joint.ball for joint in between)
                    used = tuple(between if in_series else between[:1])
                    links[child] = Link(child, parent, used if used[0].bodies[1] == child else used[::-1])
                    pending.append(child)

    for start in (WORLD, *links):
        grow(start)
    children = {joint.bodies[1] for joint in usable}
    for start in (*roots, *(body for body in bodies if body not in children), *bodies):
        if start not in links:
            links[start] = Link(start)
            grow(start)
    return list(links.values())


@dataclass(frozen=True)
class _Motion:
    """One MuJoCo joint: its axis `(3,)` and anchor `(3,)` in the world, and its position in the pose of the file."""

    joint: Joint
    dof: Dof | None  # None: a ball joint
    axis: Array
    anchor: Array
    position: float = 0.0


class TreeBuilder:
    """Builder of links in a spec.

    Attributes:
        frames: where bodies are in the spec, by path: as the file has them, but where joints hold them elsewhere.
        joints: names of MuJoCo joints, and their positions in that pose [rad or m], by degree of freedom: path of the
            joint prim and `Dof.axis` and `Dof.turns`.
    """

    def __init__(
        self, spec: mujoco.MjSpec, names: Mapping[str, str], authored: Mapping[str, Frame], warnings: FileWarnings
    ) -> None:
        """Take the names of bodies and joints in the spec, and the frames of bodies in the file, by path."""
        self._spec = spec
        self._names = names
        self._authored = {WORLD: Frame(), **authored}
        self._warnings = warnings
        self.frames: dict[str, Frame] = {WORLD: Frame()}
        self.joints: dict[tuple[str, int, bool], tuple[str, float]] = {}

    def add_link(self, link: Link, floats: bool) -> mujoco.MjsBody:
        """Add a body, whose parent is there already, with its joint; one without a joint may float."""
        frame, motions = self._authored[link.body], []
        for joint in link.joints:
            where, more = self._attach(link, joint)
            frame = frame if motions else where
            motions += more
        self.frames[link.body] = frame
        local = self.frames[link.parent].inverse() @ frame
        name = self._names[link.body]
        body = self.body(link.parent).add_body(name=name, pos=local.position, quat=to_quat(local.rotation))
        if floats and not link.joints:
            body.add_freejoint(name=name)
        for motion in motions:
            self._add_joint(body, motion, frame, alone=sum(m.joint is motion.joint for m in motions) == 1)
        return body

    def body(self, path: str) -> mujoco.MjsBody:
        """Return the body of that path; the world body for `WORLD`."""
        return self._spec.body(self._names[path]) if path != WORLD else self._spec.worldbody

    def local(self, joint: Joint, side: int) -> Frame:
        """Return one of the frames of a joint, relative to the body that it is on."""
        return self._authored[joint.bodies[side]].inverse() @ joint.frames[side]

    def _attach(self, link: Link, joint: Joint) -> tuple[Frame, list[_Motion]]:
        """Return the frame where a joint puts a body, and how it can move there."""
        flipped = joint.bodies[0] == link.body
        near, far = (1, 0) if flipped else (0, 1)
        start = self.frames[link.parent] @ self.local(joint, near)
        if flipped:  # from the second frame back to the first one
            start = start @ _walk(joint, Frame())[0].inverse()
        end, motions = _walk(joint, start)
        if flipped:
            end = start
            motions = [replace(motion, axis=-motion.axis) for motion in reversed(motions)]
        frame = end @ self.local(joint, far).inverse()
        moved = self._authored[link.body].inverse() @ frame
        turn = np.arccos(np.clip((np.trace(moved.rotation) - 1) / 2, -1, 1))
        if np.linalg.norm(moved.position) > _APART[0] or turn > _APART[1]:
            self._warnings.add('body moved to satisfy its joint', link.body)
        return frame, motions

    def _add_joint(self, body: mujoco.MjsBody, motion: _Motion, frame: Frame, alone: bool) -> None:
        joint, dof = motion.joint, motion.dof
        name = self._names[joint.path]
        anchor = frame.rotation.T @ (motion.anchor - frame.position)
        if dof is None:
            ball = body.add_joint(name=name if alone else f'{name}:ball', type=mujoco.mjtJoint.mjJNT_BALL, pos=anchor)
            if joint.cone < np.inf:
                ball.range, ball.limited = (0, joint.cone), mujoco.mjtLimited.mjLIMITED_TRUE
            return
        if not alone:  # rotations are numbered as Isaac Sim does
            name += f':{dof.axis}' if dof.turns else f':{dof.name}'
        added = body.add_joint(name=name, type=_KINDS[dof.turns], pos=anchor, axis=frame.rotation.T @ motion.axis)
        added.ref = motion.position
        if dof.lower > -np.inf or dof.upper < np.inf:
            added.range = max(dof.lower, -FAR), min(dof.upper, FAR)
            added.limited = mujoco.mjtLimited.mjLIMITED_TRUE
        own = dof.passive
        added.armature, added.frictionloss = own.armature, own.friction
        added.damping[0], added.stiffness[0], added.springref = own.damping, own.stiffness, own.rest
        if own.efforts is not None:
            added.actfrcrange, added.actfrclimited = own.efforts, mujoco.mjtLimited.mjLIMITED_TRUE
        self.joints[joint.path, dof.axis, dof.turns] = name, motion.position


def _walk(joint: Joint, frame: Frame) -> tuple[Frame, list[_Motion]]:
    """Follow the joint from its first to its second frame, as authored; returns the end and the motions passed."""
    whole = joint.frames[0].inverse() @ joint.frames[1]
    turning = [dof for dof in joint.dofs if dof.turns]
    motions = []
    for dof in joint.dofs:
        axis = frame.rotation[:, dof.axis]
        position = dof.locked if dof.locked is not None else dof.state
        if position is None and not dof.turns:
            position = float(whole.position[dof.axis])
        elif position is None:
            angle = twist(whole.rotation, dof.axis) if len(turning) == 1 else euler_xyz(whole.rotation)[dof.axis]
            position = unwrapped(float(angle), dof.lower, dof.upper)
        if dof.turns:
            frame = Frame(frame.position, frame.rotation @ about(dof.axis, position))
        else:
            frame = Frame(frame.position + position * axis, frame.rotation)
        if dof.locked is None:
            motions.append(_Motion(joint, dof, axis, frame.position, position))
    if joint.ball:
        frame = Frame(frame.position, frame.rotation @ whole.rotation)
        motions.append(_Motion(joint, None, frame.rotation[:, 0], frame.position))
    return frame, motions


_CONNECT, _WELD, _MIMIC = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD, mujoco.mjtEq.mjEQ_JOINT


def add_loop_joint(spec: mujoco.MjSpec, builder: TreeBuilder, joint: Joint, warnings: FileWarnings) -> None:
    """Connect two bodies as a joint would that is part of no tree."""
    moving = [dof for dof in joint.dofs if dof.locked is None]
    if joint.distance is not None:
        least, greatest = joint.distance
        tendon = spec.add_tendon(name=joint.path, limited=mujoco.mjtLimited.mjLIMITED_TRUE)
        tendon.range = least, min(greatest, FAR)
        for site in _sites(builder, joint, np.zeros(3)):
            tendon.wrap_site(site)
    elif any(not dof.turns for dof in moving):
        warnings.add('joint that slides and closes a loop', joint.prim)
        return
    elif joint.ball or len(moving) > 1:
        if len(moving) == 2:
            warnings.add('joint of two axes that closes a loop is a ball joint', joint.prim)
        _hold(spec, builder, joint, _CONNECT)
    elif moving:
        _hold(spec, builder, joint, _CONNECT)
        _hold(spec, builder, joint, _CONNECT, HINGE_ARM * np.eye(3)[moving[0].axis])
    else:
        _hold(spec, builder, joint, _WELD)
    if any(dof.drive is not None for dof in moving):
        warnings.add('drive of a joint that closes a loop', joint.prim)
    if any(dof.lower > -np.inf or dof.upper < np.inf for dof in moving) or joint.cone < np.inf:
        warnings.add('limits of a joint that closes a loop', joint.prim)


def add_mimics(spec: mujoco.MjSpec, builder: TreeBuilder, joints: Sequence[Joint], warnings: FileWarnings) -> None:
    """Couple joints to those that they mimic, as PhysX: `q + gearing * reference + offset = 0` in the file's units.

    ValueError for a reference that is no joint.
    """
    known = {joint.path: joint for joint in joints}
    for joint in joints:
        for relation in joint.prim.GetRelationships():
            kind, _, rest = relation.GetName().partition(':')
            if kind == 'physxMimicJoint' and rest.endswith(':referenceJoint'):
                _add_mimic(spec, builder, joint, rest.split(':')[0], known, warnings)


def add_drives(spec: mujoco.MjSpec, builder: TreeBuilder, joints: Iterable[Joint]) -> None:
    """Give driven joints a position and a velocity actuator, which follow the targets of the file at controls of zero.

    Their names are those of the joint with `/position` and `/velocity`. Gains per inertia are multiplied by the inertia
    that the joint moves in the pose of the file.
    """
    driven = [
        (*builder.joints[joint.path, dof.axis, dof.turns], dof.drive)
        for joint in joints
        for dof in joint.dofs
        if dof.drive is not None and dof.drive.limit > 0 and (joint.path, dof.axis, dof.turns) in builder.joints
    ]
    inertias: dict[str, float] = {}
    if any(drive.acceleration for _, _, drive in driven):
        model = spec.copy().compile()
        inertias = {name: 1 / float(model.dof_invweight0[model.joint(name).dofadr[0]]) for name, _, _ in driven}
    for name, _, drive in driven:
        scale = inertias[name] if drive.acceleration else 1.0
        if drive.limit < np.inf:
            joint = spec.joint(name)
            joint.actfrcrange = -drive.limit * scale, drive.limit * scale
            joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_TRUE
        gains = (('position', drive.stiffness, drive.target), ('velocity', drive.damping, drive.velocity))
        for kind, gain, target in gains:
            add_actuator(spec, name, kind, gain * scale).biasprm[0] = gain * scale * target


def _hold(
    spec: mujoco.MjSpec, builder: TreeBuilder, joint: Joint, kind: mujoco.mjtEq, offset: Array | None = None
) -> None:
    """Keep two points of the bodies, at an offset in the frames of the joint, together, or the frames as a whole."""
    name = joint.path if offset is None else f'{joint.path}/axis'
    first, second = _sites(builder, joint, np.zeros(3) if offset is None else offset, name)
    equality = spec.add_equality(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE)
    equality.name1, equality.name2 = first, second


def _sites(builder: TreeBuilder, joint: Joint, offset: Array, name: str = '') -> list[str]:
    """Mark the frames of a joint on its bodies; returns the names of the sites."""
    names = []
    for side, path in enumerate(joint.bodies):
        frame = builder.local(joint, side)
        names.append(f'{name or joint.path}/body{side}')
        position = frame.position + frame.rotation @ offset
        add_frame_site(builder.body(path), names[-1], position, to_quat(frame.rotation))
    return names


def _add_mimic(
    spec: mujoco.MjSpec,
    builder: TreeBuilder,
    joint: Joint,
    name: str,
    known: Mapping[str, Joint],
    warnings: FileWarnings,
) -> None:
    prefix = f'physxMimicJoint:{name}'
    targets = joint.prim.GetRelationship(f'{prefix}:referenceJoint').GetForwardedTargets()
    reference = known.get(str(targets[0])) if targets else None
    if reference is None:
        wrong = targets[0] if targets else 'nothing'
        raise ValueError(f'{joint.path}: {prefix}:referenceJoint must be a joint, it is {wrong}')
    own = _moving(builder, joint, name)
    other = _moving(builder, reference, value(joint.prim, f'{prefix}:referenceJointAxis'))
    if own is None or other is None:
        warnings.add('mimic joint that is no hinge or slide of a tree, or mimics none', joint.prim)
        return
    (dof, here, position), (other_dof, there, reference_position) = own, other
    gearing = (value(joint.prim, f'{prefix}:gearing') or 0.0) * dof.unit / other_dof.unit
    offset = (value(joint.prim, f'{prefix}:offset') or 0.0) * dof.unit
    equality = spec.add_equality(type=_MIMIC, objtype=mujoco.mjtObj.mjOBJ_JOINT, name1=here, name2=there)
    # MuJoCo counts both positions from those in the reference pose
    equality.data[:2] = -gearing * reference_position - offset - position, -gearing


def _moving(builder: TreeBuilder, joint: Joint, name: str | None) -> tuple[Dof, str, float] | None:
    """Return a degree of freedom of a joint in a tree, its name in the spec and position: the only one, or by name."""
    dofs = [dof for dof in joint.dofs if (joint.path, dof.axis, dof.turns) in builder.joints]
    dof = next((dof for dof in dofs if len(dofs) == 1 or dof.name == name), None)
    return None if dof is None else (dof, *builder.joints[joint.path, dof.axis, dof.turns])
