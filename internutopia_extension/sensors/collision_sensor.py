"""Collision sensor."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import SensorCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor import BaseSensor
from internutopia.model.spec import Probe
from internutopia_extension.configs.sensors import CollisionSensorCfg
from internutopia_extension.sensors.body_sensors import BodySensor

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
