"""Sensors of a robot: base class and registry.

Per env by default, batched like controllers (see `internutopia.core.robot.controller`): `batched = True` in the class's
own body, values `(env_num, ...)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from internutopia.core.config.robot import RobotCfg
from internutopia.core.config.sensor import SensorCfg
from internutopia.core.scene.scene import IScene
from internutopia.core.util.registry import OrderedKeys, is_batched, look_up, register_in

if TYPE_CHECKING:
    from internutopia.core.robot.robot import BaseRobot


class BaseSensor(OrderedKeys, ABC):
    """Base class of sensors."""

    batched: ClassVar[bool] = False
    sensors: ClassVar[dict[str, type[BaseSensor]]] = {}

    def __init__(self, config: SensorCfg, robot: BaseRobot, scene: IScene):
        self.name = config.name
        self.config = config
        self.obs_keys: list[str] = []
        self._scene = scene
        self._robot = robot

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Class decorator: make the class the implementation of sensor type `name`."""
        return register_in(BaseSensor.sensors, name)

    @abstractmethod
    def get_data(self) -> dict[str, Any]:
        """What the sensor reads now."""

    def post_reset(self) -> None:
        """Called when the env's scene is ready."""

    def reset(self, env_ids: Any = ...) -> None:
        """Forget everything about these envs: a new episode starts."""

    def restore_sensor_info(self) -> None:
        """Called by extension packages that recreate what the sensor holds."""

    def cleanup(self) -> None:
        """Called when the env is reset or closed."""


def create_sensors(robot_cfg: RobotCfg, robot: BaseRobot, scene: IScene) -> OrderedDict[str, BaseSensor]:
    """The enabled sensors of a robot, by name; on a batched robot the batched ones, on its envs' robots the others."""
    sensors: OrderedDict[str, BaseSensor] = OrderedDict()
    for config in robot_cfg.sensors or []:
        if not config.enable:
            continue
        cls = look_up(BaseSensor.sensors, 'sensor', config.type)
        if robot.fleet is None or is_batched(cls) == robot.is_batch:
            sensors[config.name] = cls(config, robot=robot, scene=scene)
    return sensors
