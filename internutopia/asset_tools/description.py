"""Description of a model file after its import: bodies, joints, colliders, masses, cameras, parts that were dropped.

Units are SI, positions relative to the parent. All of it is plain data: `dataclasses.asdict` gives what JSON can hold.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from internutopia.model.asset_files import limits, reading
from internutopia.model.groups import COLLIDER_GROUP
from internutopia.model.importers.load import load_spec
from internutopia.model.scene_cache import call_in_own_process
from internutopia.util import log

_JOINTS = {0: 'free', 1: 'ball', 2: 'prismatic', 3: 'revolute'}  # by mjtJoint
_TRANSMISSIONS = {0: 'joint', 1: 'joint', 2: 'site', 3: 'tendon', 4: 'site', 5: 'body'}  # by mjtTrn
_EQUALITIES = {0: 'connect', 1: 'weld', 2: 'joint', 3: 'tendon'}  # by mjtEq; those of flexes have no two ends


@dataclass(frozen=True)
class JointFacts:
    """A joint; its drive is the sum of the file's actuators on it."""

    name: str
    type: str
    axis: list[float] | None
    limits: list[float] | None  # [rad or m]
    stiffness: float  # of the drive [N·m/rad or N/m]
    damping: float  # of the drive [N·m·s/rad or N·s/m]
    max_force: float | None  # of all actuators together [N·m or N]
    passive_damping: float
    armature: float  # [kg·m2 or kg]
    friction: float  # [N·m or N]


@dataclass(frozen=True)
class ColliderFacts:
    """A geom that collides.

    `size` [m]: edge lengths of a box and of the bounding box of a mesh, axes of an ellipsoid, radius of a sphere,
    radius and length of a capsule or cylinder, extent of a plane; empty for an infinite plane.
    """

    name: str
    shape: str
    size: list[float]
    friction: float
    visible: bool


@dataclass(frozen=True)
class ActuatorFacts:
    """An actuator of the file.

    `drives` is the name of the joint, tendon or else that it acts on, with what kind of thing that is; `control` what
    it takes: a position or velocity target, or an effort. Ranges [of that unit, N·m or N] are None where unlimited.
    """

    name: str
    drives: str
    control: str
    gear: float
    control_range: list[float] | None
    force_range: list[float] | None


@dataclass(frozen=True)
class BodyFacts:
    """A body and all those joined to it. `visuals`: number of geoms that are only seen."""

    name: str
    position: list[float]
    mass: float
    kinematic: bool
    joints: list[JointFacts]
    colliders: list[ColliderFacts]
    visuals: int
    cameras: list[str]
    bodies: list[BodyFacts]


@dataclass(frozen=True)
class Description:
    """Contents of a model file. `world` is its static part; `dropped` lists what was mended, left out or not read."""

    file: str
    body_count: int
    joint_count: int
    dof: int
    mass: float
    world: BodyFacts
    actuators: list[ActuatorFacts]
    constraints: list[str]
    dropped: list[str]


def describe(path: Path) -> Description:
    """Import a file and describe its contents. FileNotFoundError, ValueError as `load_spec`.

    Where the limits in force require it, it is read in a separate process only.
    """
    if limits().own_process:
        return call_in_own_process([path], describe, path)
    with _captured_log() as dropped, reading(path):
        model = load_spec(path).compile()
    return Description(
        file=str(path),
        body_count=model.nbody - 1,
        joint_count=model.njnt,
        dof=model.nv,
        mass=float(model.body_mass[1:].sum()),
        world=_body(model, 0),
        actuators=[_actuator(model, i) for i in range(model.nu)],
        constraints=[_constraint(model, i) for i in range(model.neq)],
        dropped=[line for message in dropped for line in _lines(message.removeprefix(f'{path}: '))],
    )


def _lines(message: str) -> list[str]:
    """Return the lines of a message that lists something, else the message."""
    first, *rest = message.split('\n- ')
    return rest or [first]


@contextmanager
def _captured_log() -> Iterator[list[str]]:
    """Collect what importers log, warnings and information, instead of logging it."""
    messages: list[str] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: messages.append(record.getMessage())
    before = log.handlers, log.propagate, log.level
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    try:
        yield messages
    finally:
        log.handlers, log.propagate, level = before
        log.setLevel(level)


def _body(model: mujoco.MjModel, body: int) -> BodyFacts:
    geoms = np.flatnonzero(model.geom_bodyid == body)
    collides = (model.geom_contype[geoms] | model.geom_conaffinity[geoms]) != 0
    children = [child for child in np.flatnonzero(model.body_parentid == body).tolist() if child != body]
    return BodyFacts(
        name=model.body(body).name or f'body {body}',
        position=_numbers(model.body_pos[body]),
        mass=float(model.body_mass[body]) if body else 0.0,
        kinematic=bool(model.body_mocapid[body] >= 0),
        joints=[_joint(model, joint) for joint in np.flatnonzero(model.jnt_bodyid == body).tolist()],
        colliders=[_collider(model, geom) for geom in geoms[collides].tolist()],
        visuals=int((~collides).sum()),
        cameras=[model.camera(i).name for i in np.flatnonzero(model.cam_bodyid == body).tolist()],
        bodies=[_body(model, child) for child in children],
    )


def _joint(model: mujoco.MjModel, joint: int) -> JointFacts:
    dof = model.jnt_dofadr[joint]
    drives = np.flatnonzero(
        (model.actuator_trntype == mujoco.mjtTrn.mjTRN_JOINT) & (model.actuator_trnid[:, 0] == joint)
    )
    limits = [
        *([model.jnt_actfrcrange[joint]] if model.jnt_actfrclimited[joint] else []),
        *(model.actuator_forcerange[a] for a in drives if model.actuator_forcelimited[a]),
    ]
    kind = _JOINTS[int(model.jnt_type[joint])]
    return JointFacts(
        name=model.joint(joint).name or f'joint {joint}',
        type=kind,
        axis=_numbers(model.jnt_axis[joint]) if kind in ('revolute', 'prismatic') else None,
        limits=_numbers(model.jnt_range[joint]) if model.jnt_limited[joint] else None,
        stiffness=float(-model.actuator_biasprm[drives, 1].sum()) + 0.0,
        damping=float(-model.actuator_biasprm[drives, 2].sum()) + 0.0,
        max_force=float(min(limit[1] for limit in limits)) if limits else None,
        passive_damping=float(np.ravel(model.dof_damping[dof])[0]),
        armature=float(model.dof_armature[dof]),
        friction=float(model.dof_frictionloss[dof]),
    )


def _actuator(model: mujoco.MjModel, index: int) -> ActuatorFacts:
    kind = _TRANSMISSIONS.get(int(model.actuator_trntype[index]), 'body')
    target: Any = getattr(model, kind)(int(model.actuator_trnid[index, 0]))
    by_position, by_velocity = (float(model.actuator_biasprm[index, i]) for i in (1, 2))
    limited, forced = model.actuator_ctrllimited[index], model.actuator_forcelimited[index]
    return ActuatorFacts(
        name=model.actuator(index).name or f'actuator {index}',
        drives=f'{kind} {target.name}',
        control='position' if by_position else 'velocity' if by_velocity else 'effort',
        gear=float(model.actuator_gear[index, 0]),
        control_range=_numbers(model.actuator_ctrlrange[index]) if limited else None,
        force_range=_numbers(model.actuator_forcerange[index]) if forced else None,
    )


def _collider(model: mujoco.MjModel, geom: int) -> ColliderFacts:
    shape = mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix('mjGEOM_').lower()
    size: Any = model.geom_size[geom]
    if shape == 'mesh':  # its bounding box
        size = 2.0 * model.geom_aabb[geom, 3:]
    elif shape in ('box', 'ellipsoid'):
        size = 2.0 * size
    elif shape in ('capsule', 'cylinder'):
        size = [size[0], 2.0 * size[1]]
    elif shape == 'sphere':
        size = size[:1]
    elif shape == 'plane':
        size = 2.0 * size[:2] if size[:2].all() else []  # infinite
    return ColliderFacts(
        name=model.geom(geom).name,
        shape=shape,
        size=_numbers(size),
        friction=float(model.geom_friction[geom, 0]),
        visible=bool(model.geom_group[geom] < COLLIDER_GROUP and model.geom_rgba[geom, 3] > 0),
    )


def _constraint(model: mujoco.MjModel, index: int) -> str:
    kind = _EQUALITIES.get(int(model.eq_type[index]), 'flex')
    parts = {mujoco.mjtObj.mjOBJ_BODY: model.body, mujoco.mjtObj.mjOBJ_SITE: model.site}
    part = {'joint': model.joint, 'tendon': model.tendon}.get(kind, parts.get(mujoco.mjtObj(model.eq_objtype[index])))
    ends = [int(i) for i in (model.eq_obj1id[index], model.eq_obj2id[index]) if i >= 0]
    return f'{kind}: {", ".join(part(i).name or str(i) for i in ends)}' if part else kind


def _numbers(values: Any) -> list[float]:
    return [round(float(value), 9) + 0.0 for value in values]
