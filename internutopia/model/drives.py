"""Joint drives of a robot: the joints that get one, the actuators that implement it, and default gains.

A drive is three actuators (design of Isaac Sim's drives): position, velocity, effort. They are in this order, each kind
for all joints of the robot in a row, so that the targets of a robot are contiguous slices of `ctrl`.

Default gains are as stiff as the load on a joint takes, and damped critically. A hinge gives way by at most `SAG` under
the weight of all links beyond it, stretched out sideways as far as the chain reaches, a slide by `SLIDE_SAG`; so an
arm, whose links rarely all lie like that, holds a pose within one or two hundredths of a radian. That is a natural
frequency of `sqrt(g / (SAG L))` for links at a distance `L`, 3 Hz at 1 m. Dampings are critical for the inertia in that
pose. The sizes do not depend on the gravity of the scene, so that a robot is the same one everywhere; links that
gravity does not act on have no weight.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_files import BROKEN
from internutopia.model.spec import RobotSpec
from internutopia.util import did_you_mean

DRIVEN_JOINTS = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
DRIVE_KINDS = ('position', 'velocity', 'effort')
TARGET_KINDS = DRIVE_KINDS[:2]

# What refers to nothing in the tree that is attached is not attached. To delete an element takes MuJoCo time for all
# that the spec has: half a minute for the drives of a thousand joints.
_NOWHERE = '/'
SAG = 0.03  # [rad]
SLIDE_SAG = 0.01  # [m]
_GRAVITY = 9.81  # [m/s2]


class Drive(NamedTuple):
    """Gains of a joint's drive in SI units; initial `targets`, by kind, where the asset has some."""

    stiffness: float
    damping: float
    targets: Mapping[str, float]


def gets_drives(robot: RobotSpec, child: mujoco.MjSpec) -> bool:
    """Return True if a robot gets joint drives; if not, it keeps the actuators of its asset."""
    own = [actuator for actuator in child.actuators if not _drive_kind(actuator)]
    motors = robot.drives.instead_of_motors and all(_is_motor(actuator) for actuator in own)
    return not robot.drives.only_if_bare or not own or motors


def replace_actuators(robot: RobotSpec, child: mujoco.MjSpec) -> dict[str, Drive] | None:
    """Delete the actuators of a robot's asset and return the drives that its joints get instead, by joint.

    What the actuators can do at most is written into joints without their own limit. Of an asset with motors, only
    joints that have one get gains, unless they are named. None if the robot keeps the actuators.

    Raises:
        ValueError: a setting has no effect: it names a joint that is not there, or the actuators are kept.
    """
    joints = [joint.name for joint in child.joints if joint.type in DRIVEN_JOINTS]
    if not gets_drives(robot, child):
        if robot.drives.configured:
            kept = ', '.join(actuator.name for actuator in child.actuators)
            raise ValueError(
                f'robot {robot.name!r}: {" and ".join(robot.drives.configured)} would have no effect: {robot.asset} '
                f'brings actuators of its own, which are kept ({kept}). Leave it out, or take the actuators out of the '
                'file'
            )
        return None
    motors = {actuator.target for actuator in child.actuators if _is_motor(actuator)}
    own = _asset_drives(child) if robot.drives.asset_first else {}
    _limit_efforts(robot, child)
    for actuator in list(child.actuators):
        child.delete(actuator)
    if own:
        return {joint: own.get(joint, Drive(0.0, 0.0, {})) for joint in joints}
    passive = set(joints) - motors if motors and robot.drives.instead_of_motors else set[str]()
    gains = {joint: robot.drives.gains(joint, passive=joint in passive) for joint in joints}
    if robot.drives.sized:
        gains |= default_gains(child, {joint: each for joint, each in gains.items() if joint not in passive})
    return {joint: Drive(*gains[joint], {}) for joint in joints}


def take_drives(scene: mujoco.MjSpec) -> dict[str, Drive]:
    """Remove the drives in a scene's file where it is attached; returns those that its joints get instead, by joint.

    Then all its joints get one, some without gains, so that doors with and without can be given targets and gains as
    robots can. Empty for a scene without drives, or with actuators of other kinds, which are kept.
    """
    own = _asset_drives(scene)
    if not all(_drive_kind(actuator) for actuator in scene.actuators):
        return {}
    for actuator in scene.actuators:
        actuator.target = _NOWHERE
    joints = [joint.name for joint in scene.joints if joint.type in DRIVEN_JOINTS] if own else []
    return {joint: own.get(joint, Drive(0.0, 0.0, {})) for joint in joints}


def add_drives(spec: mujoco.MjSpec, prefix: str, drives: Mapping[str, Drive]) -> None:
    """Put drives on joints of an attached asset; in the asset's own spec they would inherit its actuator defaults.

    Targets that they begin with are kept in the actuators' user data, as `1, target`.
    """
    for kind in DRIVE_KINDS:
        for joint, drive in drives.items():
            gain = {'position': drive.stiffness, 'velocity': drive.damping, 'effort': 1.0}[kind]
            actuator = add_actuator(spec, prefix + joint, kind, gain)
            if kind in drive.targets:
                actuator.userdata = [1.0, drive.targets[kind]]


def add_actuator(spec: mujoco.MjSpec, joint: str, kind: str, gain: float) -> mujoco.MjsActuator:
    """Add the actuator of a drive for targets of one of `DRIVE_KINDS`, called `<joint>/<kind>`."""
    actuator = spec.add_actuator(name=f'{joint}/{kind}', target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    actuator.gainprm[0] = gain
    if kind in TARGET_KINDS:
        actuator.biasprm[1 + TARGET_KINDS.index(kind)] = -gain
    return actuator


def check_joints(robot: RobotSpec, joints: Collection[str]) -> None:
    """Raise ValueError if a setting of the drives in the config names a joint that is not among these."""
    for name in robot.drives.configured:
        setting = getattr(robot.drives, name)
        unknown = next((j for j in setting if j not in joints), None) if isinstance(setting, Mapping) else None
        if unknown is not None:
            raise ValueError(
                f'robot {robot.name!r}: {name} is given for a joint {unknown!r} that {robot.asset} does not have; '
                f'{did_you_mean(unknown, joints)}'
            )


def _limit_efforts(robot: RobotSpec, child: mujoco.MjSpec) -> None:
    """Write the greatest efforts of drives into the joints: those of the config, else of joints, else of actuators."""
    setting = robot.drives.effort_limit
    for joint in child.joints:
        limit = setting.get(joint.name) if isinstance(setting, Mapping) else setting
        if limit is not None and joint.type in DRIVEN_JOINTS:
            joint.actfrcrange, joint.actfrclimited = [-limit, limit], mujoco.mjtLimited.mjLIMITED_TRUE
    for actuator in child.actuators:
        joint = child.joint(actuator.target) if actuator.trntype == mujoco.mjtTrn.mjTRN_JOINT else None
        if joint is None or np.any(joint.actfrcrange):
            continue  # actuators of several joints (tendons) have no limit of a single one
        limit = np.abs(actuator.forcerange).max()
        if not limit and actuator.biastype == mujoco.mjtBias.mjBIAS_NONE:  # a motor: its control is a force
            limit = np.abs(actuator.ctrlrange).max() * actuator.gainprm[0]
        limit *= abs(actuator.gear[0])
        if limit:
            joint.actfrcrange, joint.actfrclimited = [-limit, limit], True


def _is_motor(actuator: mujoco.MjsActuator) -> bool:
    """Return True if the control of an actuator is an effort on one joint, times a number."""
    return (
        actuator.trntype == mujoco.mjtTrn.mjTRN_JOINT
        and actuator.dyntype == mujoco.mjtDyn.mjDYN_NONE
        and actuator.gaintype == mujoco.mjtGain.mjGAIN_FIXED
        and actuator.biastype == mujoco.mjtBias.mjBIAS_NONE
    )


def _drive_kind(actuator: mujoco.MjsActuator) -> str | None:
    """Return `position` or `velocity` for half of a drive in the asset (as USD has them), called `<joint>/<kind>`."""
    kind = actuator.name.rpartition('/')[2]
    return kind if kind in DRIVE_KINDS and actuator.biastype == mujoco.mjtBias.mjBIAS_AFFINE else None


def _asset_drives(child: mujoco.MjSpec) -> dict[str, Drive]:
    """Return the drives in an asset, by joint."""
    drives: dict[str, Drive] = {}
    for actuator in child.actuators:
        if kind := _drive_kind(actuator):
            gain = float(actuator.gainprm[0])
            target = float(actuator.biasprm[0] / gain) if gain else 0.0
            before = drives.get(actuator.target, Drive(0.0, 0.0, {kind: 0.0 for kind in TARGET_KINDS}))
            field = 'stiffness' if kind == 'position' else 'damping'
            drives[actuator.target] = before._replace(**{field: gain}, targets={**before.targets, kind: target})
    return drives


def default_gains(asset: mujoco.MjSpec, least: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Return stiffness and damping of drives on joints of a robot's asset; `least`: lower bounds, by joint.

    The least ones for an asset that does not compile, an error when the scene is compiled.
    """
    try:
        model = asset.copy().compile()
    except BROKEN:
        return dict(least)
    gains = dict[str, tuple[float, float]]()
    for name, (least_stiffness, least_damping) in least.items():
        joint = model.joint(name).id
        links, arms = _links_beyond(model, joint)
        masses, armature = model.body_mass[links], model.dof_armature[model.jnt_dofadr[joint]]
        weights = _GRAVITY * masses * (1.0 - model.body_gravcomp[links]).clip(0.0)
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE:
            load, sag = weights @ arms, SAG
            inertia = masses @ arms**2 + model.body_inertia[links].max(axis=1).sum()
        else:
            load, sag, inertia = weights.sum(), SLIDE_SAG, masses.sum()
        stiffness = max(least_stiffness, load / sag)
        damping = max(least_damping, 2.0 * np.sqrt(stiffness * (inertia + armature)))
        gains[name] = float(stiffness), float(damping)
    return gains


def _links_beyond(model: mujoco.MjModel, joint: int) -> tuple[list[int], NDArray[np.float64]]:
    """Return the bodies that a joint moves, and the greatest distance [m] of their centres of mass, slides at zero."""
    first = int(model.jnt_bodyid[joint])
    anchor = model.jnt_pos[joint]
    reach = {first: 0.0}  # of the frame of a body
    arms = [float(np.linalg.norm(model.body_ipos[first] - anchor))]
    for body in range(first + 1, model.nbody):
        parent = int(model.body_parentid[body])
        if parent in reach:
            offset = model.body_pos[body] - (anchor if parent == first else 0.0)
            reach[body] = reach[parent] + float(np.linalg.norm(offset))
            arms.append(reach[body] + float(np.linalg.norm(model.body_ipos[body])))
    return list(reach), np.array(arms)
