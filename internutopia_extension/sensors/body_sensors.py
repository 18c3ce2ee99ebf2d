"""Sensors that are mounted on a robot and take no pictures: IMU, contacts, collisions, joint forces, GPS."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import SensorCfg
from internutopia.core.robot.context import RobotContext
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor import BaseSensor
from internutopia.core.sensor.sensor import NormalNoise
from internutopia.model.probes import match_name
from internutopia.model.spec import Probe, Quat, RobotSpec
from internutopia.util.arrays import to_host
from internutopia.util.rotations import quat_multiply, quat_rotate, quat_rotate_inverse, wrap_angle, yaw_of, yaw_rotate
from internutopia_extension.configs.sensors import CollisionSensorCfg, ContactSensorCfg, IMUCfg, JointForceSensorCfg


class BodySensor(BaseSensor):
    """A sensor that reads any number of envs, and serves one env or all of them; configured by a `config_type`."""

    config_type: ClassVar[type[SensorCfg]] = SensorCfg

    def __init__(self, config: SensorCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self._articulation = robot.articulation.in_all_envs()
        self._cfg: Any = self.own_config(config)
        self._probes = self.probes(self._cfg)

    @classmethod
    def own_config(cls, config: SensorCfg) -> SensorCfg:
        """Return a config as the `config_type`; one written as a plain `SensorCfg` is validated now."""
        return config if isinstance(config, cls.config_type) else cls.config_type.model_validate(dict(config))

    @classmethod
    def probes(cls, cfg: Any) -> tuple[Probe, ...]:
        """Return what the engine has to measure for the sensor."""
        return ()

    @classmethod
    @override
    def equip(cls, config: SensorCfg, model: RobotSpec) -> RobotSpec:
        return dataclasses.replace(model, probes=(*model.probes, *cls.probes(cls.own_config(config))))

    @abstractmethod
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        """Read the sensor in the envs `env_ids` (n of them, or `...` for all): arrays `(n, ...)`.

        They are of the kind that `World.arrays` makes; on a device all envs are read.
        """

    @override
    def get_data(self) -> dict[str, Any]:
        """Return the current readings, in its env, or in all of them."""
        env_id = self._scene.env_id
        if isinstance(env_id, int):
            return {key: values[0] for key, values in self.read(np.array([env_id])).items()}
        return self.read(...)

    def noise(self, what: str, std: float) -> NormalNoise:
        """Return noise of this sensor on one of its values."""
        robot = self._scene.robot_paths[self._robot.config.prim_path]
        return NormalNoise(self._scene.world, f'{robot}/{self.name}/{what}', std)


class Mount:
    """The frame of a sensor, placed on a link."""

    def __init__(self, sensor: BodySensor, link: str | None, translation: Any, orientation: Any):
        articulation = sensor._articulation
        self.link = match_name(link or '', articulation.view.body_names) or ''
        self.body = articulation.body(self.link)
        self._translation, self._orientation = tuple(translation), unit(orientation)
        self._arrays = sensor._scene.world.arrays

    def poses(self, env_ids: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return positions `(n, 3)` [m] and orientations `(n, 4)`, env frame."""
        positions, orientations = (values[env_ids] for values in self.body.get_pose())
        constant = self._arrays.constant
        return (
            positions + quat_rotate(orientations, constant(self._translation)),
            quat_multiply(orientations, constant(self._orientation)),
        )


def unit(quaternion: Quat) -> Quat:
    """Return a quaternion scaled to length 1."""
    w, x, y, z = (np.asarray(quaternion, float) / np.linalg.norm(quaternion)).tolist()
    return w, x, y, z


@BaseSensor.register('IMU')
class IMU(BodySensor):
    """Acceleration [m/s²], angular velocity [rad/s] and orientation (w, x, y, z) of a frame on a link.

    - `linear_acceleration` `(3,)`: proper acceleration [m/s2], sensor frame: 9.81 upwards at rest, zero in free fall.
      Of the last substep; in a fresh episode of its first instant.
    - `angular_velocity` `(3,)`: [rad/s], sensor frame.
    - `orientation` `(4,)`: of the sensor in the env frame.
    """

    batched = True
    config_type = IMUCfg

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        cfg = self._cfg
        self._mount = Mount(self, cfg.prim_path, cfg.translation, cfg.orientation)
        self._acceleration_noise = self.noise('acceleration', cfg.acceleration_noise)
        self._angular_velocity_noise = self.noise('angular velocity', cfg.angular_velocity_noise)

    @classmethod
    @override
    def probes(cls, cfg: IMUCfg) -> tuple[Probe, ...]:
        place = cfg.prim_path or '', cfg.translation, unit(cfg.orientation)
        return (Probe('acceleration', *place, sensor=cfg.name),)

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        acceleration = self._articulation.view.measure(self._probes[0])[env_ids]
        _, orientation = self._mount.poses(env_ids)
        angular_velocity = quat_rotate_inverse(orientation, self._mount.body.get_angular_velocity()[env_ids])
        return {
            'linear_acceleration': self._acceleration_noise.add_to(acceleration, env_ids),
            'angular_velocity': self._angular_velocity_noise.add_to(angular_velocity, env_ids),
            'orientation': orientation,
        }


@BaseSensor.register('ContactSensor')
class ContactSensor(BodySensor):
    """Contacts of a link, an object or a movable scene body. An object includes all bodies attached to it.

    - `force` `(3,)`: net contact force on it [N], env axes. Of the last substep; in a fresh episode of its first
      instant.
    - `in_contact`: whether it touches something, with a net force of at least `config.threshold`.
    """

    batched = True
    config_type = ContactSensorCfg

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self._noise = self.noise('force', self._cfg.noise)

    @classmethod
    @override
    def probes(cls, cfg: ContactSensorCfg) -> tuple[Probe, ...]:
        return (Probe('contact', cfg.prim_path or '', against=cfg.against, sensor=cfg.name),)

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        contacts = self._articulation.view.measure(self._probes[0])[env_ids]
        force = contacts[:, 1:]
        strong = (force * force).sum(axis=-1) >= self._cfg.threshold**2
        return {'force': self._noise.add_to(force, env_ids), 'in_contact': (contacts[:, 0] > 0) & strong}


@BaseSensor.register('JointForceSensor')
class JointForceSensor(BodySensor):
    """Forces and torques in joints, in the last substep.

    - `efforts` `(joints,)`: what all actuators together exert on each joint, after clamping [N·m, sliding joints: N];
      left out if `config.joint_names` is empty.
    - `forces`, `torques` `(k, 3)`, with `config.wrenches_at`: what the parent exerts on the link through what holds it,
      actuators, bearings and limits together [N, N·m], in the axes of the link, at the joint's anchor (where a link is
      named: at its origin). At rest the force carries the weight of everything beyond the joint. At the start of an
      episode, all values are those of its first instant.
    """

    batched = True
    config_type = JointForceSensorCfg

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self._effort_noise = self.noise('efforts', self._cfg.noise)
        self._wrench_noise = self.noise('wrenches', self._cfg.noise)

    @classmethod
    @override
    def probes(cls, cfg: JointForceSensorCfg) -> tuple[Probe, ...]:
        joints = [''] if cfg.joint_names is None else cfg.joint_names
        return (
            *(Probe('effort', joint, sensor=cfg.name) for joint in joints),
            *(Probe('wrench', target, sensor=cfg.name) for target in cfg.wrenches_at),
        )

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        measure, xp = self._articulation.view.measure, self._scene.world.arrays.xp
        count = len(self._cfg.wrenches_at)
        measured = [measure(probe)[env_ids] for probe in self._probes]
        data: dict[str, NDArray[Any]] = {}
        if efforts := measured[: len(measured) - count]:
            data['efforts'] = self._effort_noise.add_to(xp.concat(efforts, axis=-1), env_ids)
        if count:
            wrenches = self._wrench_noise.add_to(xp.stack(measured[-count:], axis=1), env_ids)
            data['forces'], data['torques'] = wrenches[..., :3], wrenches[..., 3:]
        return data


@BaseSensor.register('GPSCompass')
class GPSCompass(BodySensor):
    """Position [m] and heading [rad] of the root, relative to those at the start of the episode.

    - `gps` `(2,)`: distance to the front and to the left of the start, in the heading of the start [m].
    - `compass` `(1,)`: how far it has turned to the left since, in (-pi, pi] [rad].
    """

    batched = True

    def __init__(self, config: SensorCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        # x, y [m], yaw [rad]; NaN until observed
        self._start: Any = scene.world.arrays.zeros((scene.world.env_num, 3), 'float64') + np.nan

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        xp = self._scene.world.arrays.xp
        position, orientation = (values[env_ids] for values in self._articulation.view.get_root_poses())
        pose = xp.concat([position[:, :2], yaw_of(orientation)[:, None]], axis=1)
        start = xp.where(xp.isnan(self._start[env_ids]), pose, self._start[env_ids])
        self._start[env_ids] = start
        gps = yaw_rotate(-start[:, 2], (pose - start)[:, :2])
        compass = wrap_angle(pose[:, 2] - start[:, 2])[:, None]
        return {'gps': xp.astype(gps, xp.float32), 'compass': xp.astype(compass, xp.float32)}

    @override
    def reset(self, env_ids: Any = ...) -> None:
        self._start[env_ids] = np.nan

    def save_state(self, env_ids: Any = ...) -> NDArray[np.float64]:
        """Return the start poses of these envs."""
        return to_host(self._start)[env_ids].copy()

    def load_state(self, state: NDArray[np.float64], env_ids: Any = ...) -> None:
        """Restore the start poses of these envs."""
        self._start[env_ids] = self._scene.world.arrays.asarray(state, 'float64')


_SEEN_GROUPS = (0, 1, 2, 3)  # groups of geoms: what is seen, and colliders that are not
_BEFORE, _BEHIND = 0.05, 0.1  # [m] from a contact along its normal, where something higher is searched for


@BaseSensor.register('CollisionSensor')
class CollisionSensor(BodySensor):
    """True while any part of the robot touches something other than the ground.

    - `collided`: whether the normal of a contact is further from the vertical than `config.ground_angle`. The
      ground under feet does not count: with `feet`, contacts are ignored that are no higher than the higher foot could
      step, with things that end within `config.step_height` above the contact. Contacts of its links with each other
      count as well, where the robot has such. Of the last substep.
    """

    batched = True
    config_type = CollisionSensorCfg

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self._steepest = math.cos(self._cfg.ground_angle)
        self._step_height = self._cfg.step_height
        self._feet = robot.feet if self._step_height else ()

    @classmethod
    @override
    def probes(cls, cfg: CollisionSensorCfg) -> tuple[Probe, ...]:
        return (Probe('contacts', sensor=cfg.name),)

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        world = self._scene.world
        arrays = world.arrays
        if arrays.on_device and env_ids is not ...:
            return {key: values[env_ids] for key, values in self.read(...).items()}  # rays are those of all envs
        contacts = self._articulation.view.measure(self._probes[0])[env_ids]
        contacts = contacts.reshape(len(contacts), -1, 6)
        points, normals = contacts[..., :3], contacts[..., 3:]
        steep = (abs(normals).sum(axis=-1) > 0) & (abs(normals[..., 2]) < self._steepest)
        if self._feet and (arrays.on_device or steep.any()):
            ids = arrays.arange(world.env_num) if env_ids is ... else env_ids
            steep = steep & ~self._steps(ids, points, normals)
        return {'collided': steep.any(axis=-1)}

    def _steps(self, env_ids: Any, points: Any, normals: Any) -> Any:
        """Return which contacts `(n, k)` are with things that a foot may step on; of points and normals `(n, k, 3)`."""
        arrays, xp = self._scene.world.arrays, self._scene.world.arrays.xp
        points, normals = (xp.astype(values, xp.float64) for values in (points, normals))
        feet = self._articulation.view.get_link_poses(self._feet)[0][env_ids][..., 2]
        low = points[..., 2] < xp.max(xp.astype(feet, xp.float64), axis=-1)[:, None] + self._step_height
        onwards = normals * arrays.constant((1.0, 1.0, 0.0))
        length = xp.linalg.vector_norm(onwards, axis=-1, keepdims=True)
        onwards = xp.where(length > 0, onwards / xp.where(length > 0, length, 1.0), arrays.constant((1.0, 0.0, 0.0)))
        above = points - _BEFORE * onwards + arrays.constant((0.0, 0.0, self._step_height))
        distances = self._articulation.view.cast_rays(
            env_ids,
            above,
            onwards,
            groups=_SEEN_GROUPS,
            link=self._articulation.view.body_names[0],
            through_robot=True,
        )
        return low & (distances > _BEFORE + _BEHIND)
