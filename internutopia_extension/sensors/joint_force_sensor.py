"""Joint force sensor."""

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
from internutopia_extension.configs.sensors import JointForceSensorCfg
from internutopia_extension.sensors.body_sensor import BodySensor, own_config


@BaseSensor.register('JointForceSensor')
class JointForceSensor(BodySensor):
    """Forces in joints. All are of the last substep; in a fresh episode of its first instant.

    - `efforts` `(joints,)`: what all actuators together exert on each joint, after clamping [N·m, sliding joints: N];
      left out if `config.joint_names` is empty.
    - `forces`, `torques` `(k, 3)`, with `config.wrenches_at`: what the parent exerts on the link through what holds it,
      actuators, bearings and limits together [N, N·m], in the axes of the link, at the joint's anchor (where a link is
      named: at its origin). At rest the force carries the weight of everything beyond the joint.
    """

    batched = True

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        cfg = own_config(config, JointForceSensorCfg)
        self._efforts, self._wrenches = _efforts(cfg), _wrenches(cfg)
        self._effort_noise = self.noise('efforts', cfg.noise)
        self._wrench_noise = self.noise('wrenches', cfg.noise)

    @classmethod
    @override
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        """Enable the measurement of efforts and wrenches."""
        cfg = own_config(config, JointForceSensorCfg)
        return dataclasses.replace(model, probes=(*model.probes, *_efforts(cfg), *_wrenches(cfg)))

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        measure, xp = self._articulation.view.measure, self._scene.world.arrays.xp
        data: dict[str, NDArray[Any]] = {}
        if self._efforts:
            efforts = xp.concat([measure(probe)[env_ids] for probe in self._efforts], axis=-1)
            data['efforts'] = self._effort_noise.add_to(efforts, env_ids)
        if self._wrenches:
            wrenches = xp.stack([measure(probe)[env_ids] for probe in self._wrenches], axis=1)
            wrenches = self._wrench_noise.add_to(wrenches, env_ids)
            data['forces'], data['torques'] = wrenches[..., :3], wrenches[..., 3:]
        return data


def _efforts(cfg: JointForceSensorCfg) -> tuple[Probe, ...]:
    joints = [''] if cfg.joint_names is None else cfg.joint_names
    return tuple(Probe('effort', joint, sensor=cfg.name) for joint in joints)


def _wrenches(cfg: JointForceSensorCfg) -> tuple[Probe, ...]:
    return tuple(Probe('wrench', target, sensor=cfg.name) for target in cfg.wrenches_at)
