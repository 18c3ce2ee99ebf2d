"""Layouts: addresses of the robots, bodies and cameras of a compiled model."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.compose import contact_sensor, robot_prefix
from internutopia.model.drives import DRIVE_KINDS, DRIVEN_JOINTS, TARGET_KINDS
from internutopia.model.probes import probe_addresses
from internutopia.model.spec import SCENE_PREFIX, JointOrder, Probe, RobotSpec
from internutopia.rendering.camera import Intrinsics, half_angle
from internutopia.util import did_you_mean


@dataclass(frozen=True)
class CameraLayout:
    """Address of a camera in `MjModel`; `body` is the one that it is mounted on, `follows`: except for its turns."""

    name: str
    camera: int
    body: int
    follows: bool


def camera_layouts(model: mujoco.MjModel) -> dict[str, CameraLayout]:
    """Return the cameras of a model by name."""
    names = (model.camera(i).name for i in range(model.ncam))
    tracks = model.cam_mode == mujoco.mjtCamLight.mjCAMLIGHT_TRACK
    return {
        name: CameraLayout(name, i, int(model.cam_bodyid[i]), bool(tracks[i])) for i, name in enumerate(names) if name
    }


def find_camera(model: mujoco.MjModel, cameras: Mapping[str, CameraLayout], robot: str | None, path: str) -> str:
    """Return the name of the camera at a prim path below a robot, or (None) below the scene.

    A camera is found by the end of its prim path or, where its asset has none, by the names of its link and its own:
    `torso/eye` is the camera `eye` on the link `torso`. ValueError naming the cameras there are.
    """
    prefix = SCENE_PREFIX if robot is None else robot_prefix(robot)
    path = path.strip('/')
    known: dict[str, str] = {}
    for name, layout in cameras.items():
        if name.startswith(prefix):
            own = name.removeprefix(prefix).strip('/')
            link = model.body(layout.body).name.removeprefix(prefix).strip('/')
            for alias in (own, f'{link}/{own}'):
                if alias == path or alias.endswith(f'/{path}'):
                    return name
            known[own if '/' in own else f'{link}/{own}'] = name
    whose = 'the scene' if robot is None else f'the model of robot {robot!r}'
    raise ValueError(f'there is no camera at {path!r} in {whose}; {did_you_mean(path, known)}')


def camera_intrinsics(model: mujoco.MjModel, camera: int, size: tuple[int, int]) -> Intrinsics:
    """Return the intrinsics of a camera for images of `size` (width, height) [pixels].

    Pixels are square: a camera with a sensor size shows its whole width, others their whole vertical field of
    view.
    """
    fovy = float(model.cam_fovy[camera])
    if model.cam_projection[camera] == mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC:
        return Intrinsics.of_height(0.5 * fovy, size, orthographic=True)
    width, focal = float(model.cam_sensorsize[camera, 0]), float(model.cam_intrinsic[camera, 0])
    if width > 0 and focal > 0:
        x, y = (float(value) / focal for value in model.cam_intrinsic[camera, 2:])
        return replace(Intrinsics.of_width(0.5 * width / focal, size, aperture=width), centre=(x, -y))
    return Intrinsics.of_height(half_angle(fovy), size)


def add_cameras(spec: mujoco.MjSpec, robots: Iterable[RobotSpec]) -> None:
    """Add the cameras of robots besides those of their assets; on the robot's root where there is no such link."""
    for robot in robots:
        prefix = robot_prefix(robot.name)
        for camera in robot.cameras:
            link, _, _ = camera.path.rpartition('/')
            body = spec.body(prefix + link.rpartition('/')[2]) or next(
                body for body in spec.bodies if body.name.startswith(prefix.rstrip('/'))
            )
            carrier = spec.worldbody if camera.mount == 'env' else body
            added = carrier.add_camera(name=prefix + camera.path, pos=camera.position, quat=camera.orientation)
            added.fovy = camera.fovy
            if camera.mount == 'follow':
                added.mode = mujoco.mjtCamLight.mjCAMLIGHT_TRACK


Ints = NDArray[np.intp]


@dataclasses.dataclass(frozen=True)
class BodyLayout:
    """Addresses of a rigid body in `MjModel` and `MjData`; -1 for those that it does not have.

    `parts`: bodies of the model whose masses add up to its own.
    """

    name: str
    body: int
    parts: Ints
    qpos: int = -1  # of its free joint
    dof: int = -1
    mocap: int = -1


@dataclasses.dataclass(frozen=True)
class ArticulationLayout:
    """Addresses of a robot, or of jointed bodies of an object or the scene, in `MjModel` and `MjData`.

    Joint arrays follow the order of the robot's spec (`RobotSpec.joint_order`). `targets[kind]` are the
    control indices of its drives, -1 where a joint has none of that kind; `controls` those of the asset's own
    actuators. `initial_targets[kind]` are the targets that the asset's drives begin with, NaN where it has none.
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
    contact_links: tuple[str, ...] = ()
    contacts: Ints = dataclasses.field(default_factory=lambda: np.zeros(0, np.intp))
    probes: Mapping[Probe, Ints] = dataclasses.field(default_factory=dict)

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """Key that is equal for robots that can share batched arrays."""
        measured = self.contact_links, tuple(self.probes)
        return (self.dof_names, tuple(self.bodies), self.driven, self.control_names, *measured)


def body_layout(model: mujoco.MjModel, full_name: str, name: str, whole: bool = False) -> BodyLayout:
    """Return the layout of the body `full_name` of the model, called `name`.

    A `whole` body that is the frame of others, such as that of an object from a file, has the mass of those that are
    fixed to it; a link of a robot has its own.
    """
    body = model.body(full_name).id
    parts = np.array([body], np.intp)
    if whole and not model.body_mass[body]:
        heavy = np.flatnonzero((model.body_weldid == model.body_weldid[body]) & (model.body_mass > 0))
        parts = heavy if model.body_weldid[body] and len(heavy) else parts
    joint = model.body_jntadr[body]
    free = joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
    return BodyLayout(
        name=name,
        body=body,
        parts=parts,
        qpos=int(model.jnt_qposadr[joint]) if free else -1,
        dof=int(model.jnt_dofadr[joint]) if free else -1,
        mocap=int(model.body_mocapid[body]),
    )


def robot_layout(model: mujoco.MjModel, robot: RobotSpec) -> ArticulationLayout:
    """Return the layout of a robot; joints are in the order of its spec."""
    prefix = robot_prefix(robot.name)
    joints = [j for j in _joints(model) if model.joint(j).name.startswith(prefix)]
    names = [model.joint(j).name.removeprefix(prefix) for j in joints]
    order = order_joints(model, joints, names, robot.joint_order)
    full_names = [name for name in (model.body(b).name for b in range(model.nbody)) if name.startswith(prefix)]
    bodies = {name: body_layout(model, prefix + name, name) for name in (n.removeprefix(prefix) for n in full_names)}
    actuators = {
        model.actuator(a).name.removeprefix(prefix): a
        for a in range(model.nu)
        if model.actuator(a).name.startswith(prefix)
    }
    root = next((b for b in bodies.values() if b.qpos >= 0), None)
    contact_links = robot.measured_links(bodies)
    sensors = (model.sensor(contact_sensor(robot.name, link)) for link in contact_links)
    return _layout(
        model,
        robot.name,
        root or body_layout(model, f'robots/{robot.name}', robot.name),
        {names[i]: joints[i] for i in order},
        bodies,
        actuators,
        contact_links=contact_links,
        contacts=np.array([sensor.adr[0] + i for sensor in sensors for i in range(3)], np.intp),
        probes={
            probe: addresses[order] if probe == Probe('effort') else addresses
            for probe, addresses in probe_addresses(model, robot).items()
        },
    )


def jointed_layout(model: mujoco.MjModel, name: str) -> ArticulationLayout | None:
    """Return the layout of an object's jointed bodies, or of those of the scene asset at or below a prim path.

    Joints are in the order of the model, depth first; they and the bodies are called by the last names of their prims,
    by more of the path where that is not unique. None if no hinge or slide is there.

    Args:
        model: the compiled scene.
        name: `objects/<name>`; or `scene/<path>`, where the path begins at the top of the asset, and in USD may leave
            out the default prim, as a stage does that refers to the asset; in MJCF it is the name of a body. `scene/`
            is the whole scene.
    """
    own: list[int] = []
    for b in range(1, model.nbody):
        if _is_at(model.body(b).name, name) or int(model.body_parentid[b]) in own:
            own.append(b)
    moving = [b for b in own if model.body_weldid[b] != 0]
    joints = [j for j in _joints(model) if model.jnt_bodyid[j] in moving]
    if not joints:
        return None
    names = _short_names([model.joint(j).name for j in joints])
    body_names = _short_names([model.body(b).name for b in moving])
    bodies = {name: body_layout(model, model.body(b).name, name) for name, b in zip(body_names, moving, strict=True)}
    actuators = {
        model.actuator(a).name: a
        for a in range(model.nu)
        if model.actuator_trntype[a] == mujoco.mjtTrn.mjTRN_JOINT and model.actuator_trnid[a, 0] in joints
    }
    root = next(iter(bodies.values())) if name.startswith(SCENE_PREFIX) else body_layout(model, name, name)
    return _layout(model, name, root, dict(zip(names, joints, strict=True)), bodies, actuators)


def _is_at(full_name: str, target: str) -> bool:
    """Return True if a body of the model is at or below an object or a prim of the scene, see `jointed_layout`."""
    if not target.startswith(SCENE_PREFIX):
        return f'{full_name}/'.startswith(f'{target}/')
    if not full_name.startswith(SCENE_PREFIX):
        return False
    name, path = (each.removeprefix(SCENE_PREFIX).strip('/') for each in (full_name, target))
    return not path or any(f'{each}/'.startswith(f'{path}/') for each in (name, name.partition('/')[2]))


def _short_names(full_names: Sequence[str]) -> list[str]:
    """Return the last parts of names, or as much of them as distinguishes each from the others."""
    parts = [name.split('/') for name in full_names]
    ends = [1] * len(parts)
    while True:
        short = ['/'.join(part[-end:]) for part, end in zip(parts, ends, strict=True)]
        counts = Counter(short)
        if len(counts) == len(short):
            return short
        ends = [end + (counts[name] > 1) for name, end in zip(short, ends, strict=True)]


def _joints(model: mujoco.MjModel) -> Iterable[int]:
    """Return the hinges and slides of a model."""
    return (j for j in range(model.njnt) if mujoco.mjtJoint(model.jnt_type[j]) in DRIVEN_JOINTS)


def _layout(
    model: mujoco.MjModel,
    name: str,
    root: BodyLayout,
    dofs: Mapping[str, int],
    bodies: Mapping[str, BodyLayout],
    actuators: Mapping[str, int],
    **measured: Any,
) -> ArticulationLayout:
    """Return the layout of joints (ids by name), bodies, and their actuators by name, with what is `measured`."""
    joints = list(dofs.values())
    drives = {kind: [f'{model.joint(j).name}/{kind}' for j in joints] for kind in DRIVE_KINDS}
    present = {model.actuator(a).name for a in actuators.values()}
    driven = bool(joints) and all(names[0] in present for names in drives.values())
    if driven:
        targets = {kind: np.array([model.actuator(n).id for n in names], np.intp) for kind, names in drives.items()}
        actuators = {}
    else:
        targets = _actuator_targets(model, joints, list(actuators.values()))
    return ArticulationLayout(
        name=name,
        root=root,
        dof_names=tuple(dofs),
        joint_ids=np.array(joints, np.intp),
        qpos=model.jnt_qposadr[joints].astype(np.intp) if joints else np.zeros(0, np.intp),
        dof=model.jnt_dofadr[joints].astype(np.intp) if joints else np.zeros(0, np.intp),
        targets=targets,
        initial_targets=_initial_targets(model, targets) if driven else {},
        driven=driven,
        controls=np.array(list(actuators.values()), np.intp),
        control_names=tuple(actuators),
        bodies=bodies,
        **measured,
    )


def _initial_targets(model: mujoco.MjModel, targets: Mapping[str, Ints]) -> dict[str, NDArray[np.float64]]:
    """Return initial targets of the asset's drives, from user data `1, target`; nan for drives without one."""
    if not model.nuser_actuator:
        return {}
    given = {kind: model.actuator_user[targets[kind]] for kind in TARGET_KINDS}
    return {kind: np.where(user[:, 0] == 1, user[:, 1], np.nan) for kind, user in given.items()}


def _actuator_targets(model: mujoco.MjModel, joints: list[int], actuators: list[int]) -> dict[str, Ints]:
    """Return the asset's own actuators that take a position, a velocity or an effort target, by joint.

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


def order_joints(model: mujoco.MjModel, joints: Sequence[int], names: Sequence[str], order: JointOrder) -> list[int]:
    """Return indices into `joints`, joint ids of one robot as the model has them, in the requested order.

    Args:
        model: the compiled scene.
        joints: joint ids, depth first.
        names: what the robot calls them.
        order: see `RobotSpec`.
    """
    places = list(range(len(joints)))
    if order == 'depth_first':
        return places
    if order == 'breadth_first':
        paths = [_links_to(model, joint) for joint in joints]
        return sorted(places, key=lambda place: (len(paths[place]), paths[place], place))
    return sorted(places, key=lambda place: order.index(names[place]))


def _links_to(model: mujoco.MjModel, joint: int) -> list[str]:
    """Return the names of the bodies from the world to the one that a joint moves."""
    body, names = int(model.jnt_bodyid[joint]), []
    while body:
        names.append(model.body(body).name)
        body = int(model.body_parentid[body])
    return names[::-1]
