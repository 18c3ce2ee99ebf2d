"""Compiled scene: an `MjModel` with the addresses of its robots and objects, and the state that envs are reset to."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS
from numpy.typing import NDArray

from internutopia.model.compose import object_body
from internutopia.model.kinematics import joint_ranges, outside_limits
from internutopia.model.layouts import (
    ArticulationLayout,
    BodyLayout,
    body_layout,
    camera_layouts,
    find_camera,
    jointed_layout,
    robot_layout,
)
from internutopia.model.semantics import SceneLabels
from internutopia.model.spec import IDENTITY_QUAT, OBJECTS_PREFIX, SCENE_PREFIX, SceneSpec
from internutopia.util import did_you_mean
from internutopia.util.rotations import quat_multiply, quat_rotate

_STARTS_KEPT = 64  # of a scene, by spec


class CompiledScene:
    """A compiled scene; immutable. `model` must not be written to: it is shared by all envs that run it.

    `source`: what it was compiled from; poses in it are those of any of the envs that run it.
    """

    def __init__(self, scene: SceneSpec, model: mujoco.MjModel):
        self.source = scene
        self.model = model
        self.robots = {robot.name: robot_layout(self.model, robot) for robot in scene.robots}
        self.bodies = {
            obj.name: body_layout(self.model, object_body(obj.name), obj.name, whole=True) for obj in scene.objects
        }
        for i in range(1, self.model.nbody):
            name = self.model.body(i).name
            if name.startswith(SCENE_PREFIX) and self.model.body_weldid[i] != 0:
                short = name.removeprefix(SCENE_PREFIX).lstrip('/')  # names from USD are prim paths
                self.bodies[short] = body_layout(self.model, name, short, whole=True)
        self._starts: OrderedDict[int, tuple[SceneSpec, dict[str, NDArray[np.float64]]]] = OrderedDict()
        self._jointed: dict[str, ArticulationLayout | None] = {}
        self.size = mujoco.mj_sizeModel(model)  # [bytes], most of what it takes of the memory
        self.cameras = camera_layouts(self.model)
        self.labels = SceneLabels(
            model,
            {object_body(obj.name): obj for obj in scene.objects},
            {layout.body: name for name, layout in self.bodies.items()},
            scene.numbered,
        )

    @property
    def robot_names(self) -> tuple[str, ...]:
        """Names of the robots in it."""
        return tuple(self.robots)

    def articulation(self, name: str) -> ArticulationLayout | None:
        """Return the robot of that name, or the jointed bodies of the scene or an object, see `jointed_layout`."""
        if name in self.robots or not name.startswith((SCENE_PREFIX, OBJECTS_PREFIX)):
            return self.robots.get(name)
        if name not in self._jointed:
            self._jointed[name] = jointed_layout(self.model, name)
        return self._jointed[name]

    def no_articulation(self, name: str) -> str:
        """Return the message for a missing articulation of this name, with close matches."""
        if name.startswith(OBJECTS_PREFIX):
            return f'no hinges or slides of an object {name.removeprefix(OBJECTS_PREFIX)!r}'
        if not name.startswith(SCENE_PREFIX):
            return f'no robot {name!r}; {did_you_mean(name, self.robots)}'
        path = name.removeprefix(SCENE_PREFIX).strip('/')
        jointed = self.articulation(SCENE_PREFIX)
        bodies = [self.model.body(body.body).name for body in jointed.bodies.values()] if jointed else []
        paths = [body.removeprefix(SCENE_PREFIX).strip('/') for body in bodies]
        return f'no hinges or slides of its scene at or below {path!r}; {did_you_mean(path, paths)}'

    def source_with(
        self, self_collisions: Mapping[str, bool | None], broken: Sequence[bool] | None = None
    ) -> SceneSpec:
        """Return the spec it was compiled from, except for self-collisions of some robots and joints that broke.

        `broken` has a flag for each of `SceneSpec.joints`; None leaves them as they are.
        """
        source = self.source
        robots = [
            dataclasses.replace(robot, self_collisions=self_collisions.get(robot.name, robot.self_collisions))
            for robot in source.robots
        ]
        flags = [joint.broken for joint in source.joints] if broken is None else broken
        joints = [dataclasses.replace(joint, broken=flag) for joint, flag in zip(source.joints, flags, strict=True)]
        return dataclasses.replace(source, robots=tuple(robots), joints=tuple(joints))

    def camera_name(self, robot: str | None, path: str) -> str:
        """Return the camera at a prim path below a robot, or (None) below the scene. ValueError naming those of it."""
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
        for robot in self.robots.values():  # which of an asset's own actuators take which target, by their gains
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
        """Raise ValueError if `scene` starts joints that a robot does not have, or joints outside of their limits."""
        if id(scene) in self._starts:
            return  # it was checked
        for robot in scene.robots:
            layout = self.robots[robot.name]
            names = layout.dof_names
            unknown = next((joint for joint in robot.joint_positions if joint not in names), None)
            if unknown is not None:
                raise ValueError(f'robot {robot.name!r} has no joint {unknown!r}; {did_you_mean(unknown, names)}')
            joints = layout.joint_ids[[names.index(joint) for joint in robot.joint_positions]]
            positions = list(robot.joint_positions.values())
            if faults := outside_limits(robot.joint_positions, positions, joint_ranges(self.model, joints)):
                raise ValueError(
                    f'robot {robot.name!r}: initial joint positions are outside of the limits of joints: {faults}; '
                    'are they in radians (of sliding joints in metres)?'
                )

    def initial_state(self, scene: SceneSpec) -> dict[str, NDArray[np.float64]]:
        """Return read-only state fields of a new env: qpos, ctrl, mocap_pos, mocap_quat, for the poses of `scene`."""
        if id(scene) not in self._starts:
            state = self._initial_state(scene)
            for value in state.values():
                value.flags.writeable = False
            self._starts[id(scene)] = scene, state  # it lives as long as its id is here
            if len(self._starts) > _STARTS_KEPT:
                self._starts.popitem(last=False)
        return self._starts[id(scene)][1]

    def data_at_start(self, scene: SceneSpec) -> mujoco.MjData:
        """Return the data of a new env for the poses of `scene`, positions computed."""
        data = mujoco.MjData(self.model)
        for name, values in self.initial_state(scene).items():
            getattr(data, name)[:] = values
        mujoco.mj_kinematics(self.model, data)
        return data

    def _initial_state(self, scene: SceneSpec) -> dict[str, NDArray[np.float64]]:
        data = {name: value.copy() for name, value in self._default_state.items()}
        for robot in scene.robots:
            layout = self.robots[robot.name]
            for body in (layout.root, *(body for body in layout.bodies.values() if body.mocap >= 0)):
                _place(data, body, robot.position, robot.orientation)
            given = [layout.dof_names.index(joint) for joint in robot.joint_positions]
            data['qpos'][layout.qpos[given]] = list(robot.joint_positions.values())
            _aim(data, layout, given)
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
        if jointed := self.articulation(SCENE_PREFIX):
            _aim(data, jointed)
        return data


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


def _aim(data: dict[str, NDArray[np.float64]], layout: ArticulationLayout, posed: Sequence[int] = ()) -> None:
    """Make drives hold joints where they are, except for joints with their own target that were not `posed`."""
    if not layout.driven:
        return
    data['ctrl'][layout.targets['position']] = data['qpos'][layout.qpos]
    for kind, targets in layout.initial_targets.items():
        own = ~np.isnan(targets)
        own[list(posed)] = False
        data['ctrl'][layout.targets[kind][own]] = targets[own]
