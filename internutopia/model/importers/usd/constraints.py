"""Constraints and drives: forces on joints, and between bodies outside their tree (loops, ropes, mimic joints)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import mujoco
import numpy as np

from internutopia.model.drives import add_actuator
from internutopia.model.groups import HINGE_ARM, add_frame_site
from internutopia.model.importers.file_warnings import FileWarnings
from internutopia.model.importers.transforms import Array, to_quat
from internutopia.model.importers.usd.joint_prims import Dof, Joint
from internutopia.model.importers.usd.trees import FAR, TreeBuilder
from internutopia.model.importers.usd.values import value

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
