"""Collision sensor."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.config.sensor import SensorCfg
from internutopia.core.model.spec import Probe, RobotSpec
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor import BaseSensor
from internutopia_extension.configs.sensors.collision_sensor import CollisionSensorCfg
from internutopia_extension.sensors.body_sensor import BodySensor, own_config


@BaseSensor.register('CollisionSensor')
class CollisionSensor(BodySensor):
    """Whether any part of the robot touches a wall or a thing, rather than the ground.

    - `collided`: whether the normal of a contact is further from the vertical than `config.ground_angle`. Contacts of
      its links with each other count as well, where the robot has such. Of the last substep.
    """

    batched = True

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self._steepest = math.cos(own_config(config, CollisionSensorCfg).ground_angle)
        self._probe = _probe(config)

    @classmethod
    @override
    def equip(cls, config: Any, model: RobotSpec) -> RobotSpec:
        """Let the normals of contacts be measured."""
        return dataclasses.replace(model, probes=(*model.probes, _probe(config)))

    @override
    def read(self, env_ids: Any) -> dict[str, NDArray[Any]]:
        normals = self._articulation.view.measure(self._probe)[env_ids]
        normals = normals.reshape(len(normals), -1, 3)
        there = abs(normals).sum(axis=-1) > 0
        return {'collided': (there & (abs(normals[..., 2]) < self._steepest)).any(axis=-1)}


def _probe(config: SensorCfg) -> Probe:
    return Probe('normals', sensor=config.name)
