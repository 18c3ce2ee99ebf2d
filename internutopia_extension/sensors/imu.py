"""Inertial measurement unit."""

from __future__ import annotations

import dataclasses
from typing import Any

from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import SensorCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor import BaseSensor
from internutopia.model.spec import Probe, RobotSpec
from internutopia.util.rotations import quat_rotate_inverse
from internutopia_extension.configs.sensors import IMUCfg
from internutopia_extension.sensors.body_sensor import BodySensor, Mount, own_config, unit


@BaseSensor.register('IMU')
class IMU(BodySensor):
    """Acceleration, angular velocity and orientation of a frame on a link.

    - `linear_acceleration` `(3,)`: proper acceleration [m/s2], sensor frame: 9.81 upwards at rest, zero in free fall.
      Of the last substep; in a fresh episode of its first instant.
    - `angular_velocity` `(3,)`: [rad/s], sensor frame.
    - `orientation` `(4,)`: of the sensor in the env frame.
    """

    batched = True

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        cfg = own_config(config, IMUCfg)
        self._probe = _probe(cfg)
        self._mount = Mount(self, cfg.prim_path, cfg.translation, cfg.orientation)
        self._acceleration_noise = self.noise('acceleration', cfg.acceleration_noise)
        self._angular_velocity_noise = self.noise('angular velocity', cfg.angular_velocity_noise)

    @classmethod
    @override
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        """Enable the measurement of the acceleration."""
        return dataclasses.replace(model, probes=(*model.probes, _probe(own_config(config, IMUCfg))))

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        acceleration = self._articulation.view.measure(self._probe)[env_ids]
        _, orientation = self._mount.poses(env_ids)
        angular_velocity = quat_rotate_inverse(orientation, self._mount.body.get_angular_velocity()[env_ids])
        return {
            'linear_acceleration': self._acceleration_noise.add_to(acceleration, env_ids),
            'angular_velocity': self._angular_velocity_noise.add_to(angular_velocity, env_ids),
            'orientation': orientation,
        }


def _probe(cfg: IMUCfg) -> Probe:
    return Probe('acceleration', cfg.prim_path or '', cfg.translation, unit(cfg.orientation), sensor=cfg.name)
