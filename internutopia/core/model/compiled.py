"""Compiled scene: an `MjModel` with the addresses of its robots and objects, and the state that envs are reset to."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from functools import cached_property

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS
from numpy.typing import NDArray

from internutopia.core.model.cameras import camera_layouts, find_camera
from internutopia.core.model.compose import contact_sensor, object_body, robot_prefix
from internutopia.core.model.drives import DRIVE_KINDS, DRIVEN_JOINTS, TARGET_KINDS
from internutopia.core.model.joint_order import order_joints
from internutopia.core.model.probes import probe_addresses
from internutopia.core.model.semantics import SceneLabels
from internutopia.core.model.spec import IDENTITY_QUAT, Probe, RobotSpec, SceneSpec
from internutopia.core.util import did_you_mean
from internutopia.core.util.rotations import quat_multiply, quat_rotate

Ints = NDArray[np.intp]


@dataclasses.dataclass(frozen=True)
class BodyLayout:
    """Addresses of a rigid body in `MjModel` and `MjData`; -1 for those that it does not have."""

    name: str
    body: int
    qpos: int = -1  # of its free joint
    dof: int = -1
    mocap: int = -1


@dataclasses.dataclass(frozen=True)
class ArticulationLayout:
    """Addresses of a robot in `MjModel` and `MjData`.

    Joint arrays follow the order that the robot's spec asks for (`RobotSpec.joint_order`). `targets[kind]` are the
    control indices of its drives, -1 where a joint has none of that kind; `controls` those of the asset's own
    actuators. `initial_targets[kind]` are the targets that the asset's drives begin with, NaN where it says none.
    `contacts` are the addresses in `sensordata` of the contact forces on `contact_links`, three for each; `probes`
    those of what else is measured.
    """

    name: str
    root: BodyLayout
    dof_names: tuple[str, ...]
    joint_ids: Ints
    qpos: Ints
    dof: Ints
    targets: Mapping[str, Ints]
    initial_targets: Mapping[str, NDArray[np.float64]]
    driven: bool  # by joint drives, not by the asset's own actuators
    controls: Ints
    control_names: tuple[str, ...]
    bodies: Mapping[str, BodyLayout]
    contact_links: tuple[str, ...]
    contacts: Ints
    probes: Mapping[Probe, Ints]

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """Equal for robots that can share batched arrays."""
        measured = self.contact_links, tuple(self.probes)
        return (self.dof_names, tuple(self.bodies), self.driven, self.control_names, *measured)


class CompiledScene:
    """A compiled scene; immutable. `model` must not be written to: it is shared by all envs that run it.

    `source`: what it was compiled from; poses in it are those of any of the envs that run it.
    """

    def __init__(self, scene: SceneSpec, model: mujoco.MjModel):
        self.source = scene
        self.model = model
        self.robots = {robot.name: _articulation(self.model, robot) for robot in scene.robots}
        self.bodies = {obj.name: _body(self.model, object_body(obj.name), obj.name) for obj in scene.objects}
        for i in range(1, self.model.nbody):
            name = self.model.body(i).name
            if name.startswith('scene/') and self.model.body_weldid[i] != 0:
                short = name.removeprefix('scene/').lstrip('/')  # names from USD are prim paths
                self.bodies[short] = _body(self.model, name, short)
        self.size = mujoco.mj_sizeModel(model)  # [bytes], most of what it takes of the memory
        self.cameras = camera_layouts(self.model)
        self.labels = SceneLabels(
            model,
            {object_body(obj.name): obj for obj in scene.objects},
            {layout.body: name for name, layout in self.bodies.items()},
        )

    @property
    def robot_names(self) -> tuple[str, ...]:
        """Names of the robots in it."""
        return tuple(self.robots)

    def with_self_collisions(self, flags: Mapping[str, bool | None]) -> SceneSpec:
        """What it was compiled from, but for `RobotSpec.self_collisions` of some robots."""
        robots = (
            dataclasses.replace(robot, self_collisions=flags.get(robot.name, robot.self_collisions))
            for robot in self.source.robots
        )
        return dataclasses.replace(self.source, robots=tuple(robots))

    def camera_name(self, robot: str | None, path: str) -> str:
        """The camera at a prim path below a robot, or (None) below the scene. ValueError naming those there are."""
        return find_camera(self.model, self.cameras, robot, path)

    @cached_property
    def structure(self) -> bytes:
        """Digest of everything in the model that a `mujoco.batch.Batch` cannot hold per simulation.

        Models of equal structure differ only in float fields that `Batch.expand` gives per-simulation values.
        """
        digest = hashlib.blake2b(digest_size=16)
        for name in sorted(n for n in dir(self.model) if not n.startswith('_')):
            value = getattr(self.model, name, None)
            if isinstance(value, np.ndarray):
                if name not in MODEL_FIELDS or value.dtype.kind in 'iub':
                    digest.update(f'{name}{value.shape}'.encode() + value.tobytes())
            elif isinstance(value, int | bytes) and name != 'signature':
                digest.update(f'{name}={value!r}'.encode())
        for robot in self.robots.values():  # which of an asset's own actuators take which target, told by their gains
            digest.update(b''.join(targets.tobytes() for targets in robot.targets.values()))
            digest.update(repr(tuple(robot.probes)).encode())  # views find their robot by them
        # the solver scales its tolerance by the mean inertia: it is part of the result, down to the last bit
        digest.update(repr(self.model.stat.meaninertia).encode())
        for name in sorted(n for n in dir(self.model.opt) if not n.startswith('_')):
            if isinstance(value := getattr(self.model.opt, name), int):
                digest.update(f'{name}={value!r}'.encode())
        return digest.digest()

    @cached_property
    def digest(self) -> bytes:
        """Digest of the whole model; equal for models on which a state means the same."""
        digest = hashlib.blake2b(self.structure, digest_size=16)
        for name in sorted(MODEL_FIELDS):
            value = getattr(self.model.opt, name[4:]) if name.startswith('opt.') else getattr(self.model, name)
            digest.update(np.asarray(value).tobytes())
        return digest.digest()

    def check(self, scene: SceneSpec) -> None:
        """ValueError if `scene` gives initial positions for joints that a robot does not have."""
        for robot in scene.robots:
            names = self.robots[robot.name].dof_names
            unknown = next((joint for joint in robot.joint_positions if joint not in names), None)
            if unknown is not None:
                raise ValueError(f'robot {robot.name!r} has no joint {unknown!r}; {did_you_mean(unknown, names)}')

    def initial_state(self, scene: SceneSpec) -> dict[str, NDArray[np.float64]]:
        """State fields of a fresh env: qpos, ctrl, mocap_pos, mocap_quat, for the poses of `scene`."""
        data = {name: value.copy() for name, value in self._default_state.items()}
        for robot in scene.robots:
            layout = self.robots[robot.name]
            for body in (layout.root, *(body for body in layout.bodies.values() if body.mocap >= 0)):
                _place(data, body, robot.position, robot.orientation)
            _pose_joints(data, layout, robot)
        for obj in scene.objects:
            _place(data, self.bodies[obj.name], obj.position, obj.orientation)
        return data

    @cached_property
    def _default_state(self) -> dict[str, NDArray[np.float64]]:
        """State fields as the assets have them."""
        model = self.model
        data = {
            'qpos': model.qpos0.copy(),
            'ctrl': np.zeros(model.nu),
            'mocap_pos': np.zeros((model.nmocap, 3)),
            'mocap_quat': np.zeros((model.nmocap, 4)),
        }
        mocap = model.body_mocapid >= 0
        data['mocap_pos'][model.body_mocapid[mocap]] = model.body_pos[mocap]
        data['mocap_quat'][model.body_mocapid[mocap]] = model.body_quat[mocap]
        return data


def _body(model: mujoco.MjModel, full_name: str, name: str) -> BodyLayout:
    body = model.body(full_name).id
    joint = model.body_jntadr[body]
    free = joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
    return BodyLayout(
        name=name,
        body=body,
        qpos=int(model.jnt_qposadr[joint]) if free else -1,
        dof=int(model.jnt_dofadr[joint]) if free else -1,
        mocap=int(model.body_mocapid[body]),
    )


def _articulation(model: mujoco.MjModel, robot: RobotSpec) -> ArticulationLayout:
    prefix = robot_prefix(robot.name)
    joints = [
        j
        for j in range(model.njnt)
        if model.joint(j).name.startswith(prefix) and mujoco.mjtJoint(model.jnt_type[j]) in DRIVEN_JOINTS
    ]
    names = [model.joint(j).name.removeprefix(prefix) for j in joints]
    order = order_joints(model, joints, names, robot.joint_order)
    joints, dof_names = [joints[i] for i in order], tuple(names[i] for i in order)
    bodies = {
        model.body(b).name.removeprefix(prefix): _body(
            model, model.body(b).name, model.body(b).name.removeprefix(prefix)
        )
        for b in range(model.nbody)
        if model.body(b).name.startswith(prefix)
    }
    actuators = {
        model.actuator(a).name.removeprefix(prefix): a
        for a in range(model.nu)
        if model.actuator(a).name.startswith(prefix)
    }
    driven = bool(dof_names) and all(f'{dof_names[0]}/{kind}' in actuators for kind in DRIVE_KINDS)
    if driven:
        targets = {kind: np.array([actuators[f'{n}/{kind}'] for n in dof_names], np.intp) for kind in DRIVE_KINDS}
        actuators = {}
    else:
        targets = _actuator_targets(model, joints, list(actuators.values()))
    root = next((b for b in bodies.values() if b.qpos >= 0), None) or _body(model, f'robots/{robot.name}', robot.name)
    return ArticulationLayout(
        name=robot.name,
        root=root,
        dof_names=dof_names,
        joint_ids=np.array(joints, np.intp),
        qpos=model.jnt_qposadr[joints].astype(np.intp) if joints else np.zeros(0, np.intp),
        dof=model.jnt_dofadr[joints].astype(np.intp) if joints else np.zeros(0, np.intp),
        targets=targets,
        initial_targets=_initial_targets(model, targets) if driven else {},
        driven=driven,
        controls=np.array(list(actuators.values()), np.intp),
        control_names=tuple(actuators),
        bodies=bodies,
        contact_links=robot.contact_links,
        contacts=np.array(
            [
                model.sensor(contact_sensor(robot.name, link)).adr[0] + i
                for link in robot.contact_links
                for i in range(3)
            ],
            np.intp,
        ),
        probes={
            probe: addresses[order] if probe == Probe('effort') else addresses
            for probe, addresses in probe_addresses(model, robot).items()
        },
    )


def _initial_targets(model: mujoco.MjModel, targets: Mapping[str, Ints]) -> dict[str, NDArray[np.float64]]:
    """Targets that the drives of the asset begin with: where user data says `1, target`."""
    if not model.nuser_actuator:
        return {}
    given = {kind: model.actuator_user[targets[kind]] for kind in TARGET_KINDS}
    return {kind: np.where(user[:, 0] == 1, user[:, 1], np.nan) for kind, user in given.items()}


def _actuator_targets(model: mujoco.MjModel, joints: list[int], actuators: list[int]) -> dict[str, Ints]:
    """The asset's own actuators that take a position, a velocity or an effort target, by joint.

    An actuator of the `<position>` kind has bias `-kp q`, a `<velocity>` one bias `-kv v` and no `-kp q`, a `<motor>`
    of gear 1 no bias: its control is the joint's effort.
    """
    targets = {kind: np.full(len(joints), -1, np.intp) for kind in DRIVE_KINDS}
    for a in actuators:
        if model.actuator_trntype[a] != mujoco.mjtTrn.mjTRN_JOINT or model.actuator_trnid[a, 0] not in joints:
            continue
        kp, kd = -model.actuator_biasprm[a, 1], -model.actuator_biasprm[a, 2]
        if kp == 0 and kd == 0 and model.actuator_gear[a, 0] * model.actuator_gainprm[a, 0] != 1.0:
            continue
        kind = 'position' if kp > 0 else 'velocity' if kd > 0 else 'effort'
        targets[kind][joints.index(int(model.actuator_trnid[a, 0]))] = a
    return targets


def _place(data: dict[str, NDArray[np.float64]], body: BodyLayout, position: object, orientation: object) -> None:
    """Write a pose into the state, on top of where the asset itself puts its root."""
    pos = np.asarray(position, np.float64)
    quat = np.asarray(orientation, np.float64)
    quat = quat / np.linalg.norm(quat)
    if body.mocap >= 0:
        own_pos, own_quat = data['mocap_pos'][body.mocap], data['mocap_quat'][body.mocap]
    elif body.qpos >= 0:
        own_pos, own_quat = np.split(data['qpos'][body.qpos : body.qpos + 7], [3])
    else:
        return
    if tuple(quat.tolist()) != IDENTITY_QUAT:  # most are not turned: resets are faster without the algebra
        own_pos[:] = quat_rotate(quat, own_pos)
        own_quat[:] = quat_multiply(quat, own_quat)
    own_pos += pos


def _pose_joints(data: dict[str, NDArray[np.float64]], layout: ArticulationLayout, robot: RobotSpec) -> None:
    """Write initial joint positions and make them the position targets, but for joints with a target of their own."""
    given = [layout.dof_names.index(joint) for joint in robot.joint_positions]
    data['qpos'][layout.qpos[given]] = list(robot.joint_positions.values())
    if not layout.driven:
        return
    data['ctrl'][layout.targets['position']] = data['qpos'][layout.qpos]
    for kind, targets in layout.initial_targets.items():
        own = ~np.isnan(targets)
        own[given] = False
        data['ctrl'][layout.targets[kind][own]] = targets[own]
