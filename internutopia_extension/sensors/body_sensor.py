"""Base of the sensors that are mounted on a robot and take no pictures."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import SensorCfg
from internutopia.core.robot.context import RobotContext
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor import BaseSensor
from internutopia.core.sensor.noise import NormalNoise
from internutopia.model.probes import match_name
from internutopia.model.spec import Quat
from internutopia.util.rotations import quat_multiply, quat_rotate

C = TypeVar('C', bound=SensorCfg)


class BodySensor(BaseSensor):
    """A sensor that reads any number of envs, and serves one env or all of them."""

    def __init__(self, config: SensorCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self._articulation = robot.articulation.in_all_envs()

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


def own_config(config: SensorCfg, cls: type[C]) -> C:
    """Return a sensor's config as its own class; one written as a plain `SensorCfg` is checked now."""
    return config if isinstance(config, cls) else cls.model_validate(dict(config))


def unit(quaternion: Quat) -> Quat:
    """Return a quaternion scaled to length 1."""
    w, x, y, z = (np.asarray(quaternion, float) / np.linalg.norm(quaternion)).tolist()
    return w, x, y, z
