"""Configs of robots, their controllers and their sensors."""

import inspect

from pydantic import FiniteFloat, field_validator

from internutopia.config.base import BaseCfg, PathStr, Quaternion, Scale, Vector
from internutopia.config.typed import TypedCfg, items_by_type

__all__ = ['BaseCfg', 'ControllerCfg', 'MimicCfg', 'RobotCfg', 'SensorCfg']


class SensorCfg(TypedCfg):
    """A sensor of a robot. Subclasses refuse unknown fields; `SensorCfg` itself keeps them."""

    name: str
    """Key of the sensor in the observations."""
    prim_path: str | None = None
    """Path of the sensor's prim relative to the robot's, without a leading slash; None where a type needs none."""
    type: str
    """Registered name of the sensor class."""
    enable: bool = True
    """True if the sensor runs; a disabled one costs nothing and has no observation."""

    @property
    def is_on(self) -> bool:
        """False if `enable` switches the sensor off; of a subclass that declares it, that is its own business."""
        classes = type(self).__mro__[: type(self).__mro__.index(SensorCfg)]
        return self.enable or any('enable' in inspect.get_annotations(cls) for cls in classes)

    def bytes_per_env(self) -> int:
        """Return the memory that the data of one env take, bytes, where they are large; 0 if that does not matter."""
        return 0


class ControllerCfg(TypedCfg):
    """A controller: turns actions into joint targets. All controller configs keep unknown fields."""

    open_subclasses = True

    name: str
    """Key of the controller in actions and observations."""
    type: str
    """Registered name of the controller class."""
    sub_controllers: list['ControllerCfg'] | None = None
    """Controllers that this one passes its commands to, in the order its class expects; None means none."""

    @field_validator('sub_controllers', mode='before')
    @classmethod
    def _sub_controllers_by_type(cls, items: object) -> object:
        return ControllerCfg.from_items(items)


class MimicCfg(BaseCfg):
    """Target of a joint that follows others: `offset` plus the sum of `multipliers` times their targets."""

    multipliers: dict[str, FiniteFloat] = {}
    """Factors by name of the joints that it follows; empty for a joint that is held at `offset`."""
    offset: FiniteFloat = 0.0
    """Target when the targets of the other joints are 0, rad or m."""


class RobotCfg(TypedCfg):
    """A robot. Subclasses refuse unknown fields; `RobotCfg` itself keeps them, for types without a config class."""

    name: str
    """Key of the robot in actions and observations, unique within its task."""
    type: str
    """Registered name of the robot class."""
    prim_path: str
    """Path of the robot's prim below the robots' root of its env, with a leading slash."""
    usd_path: PathStr | None = None
    """Model file: USD, URDF (`.urdf`) or MJCF (`.xml`); None only for a robot class that overrides `model`."""
    position: Vector = (0.0, 0.0, 0.0)
    """Start position of the robot's root (x, y, z), m, env frame."""
    orientation: Quaternion | None = None
    """Start orientation of the robot's root (w, x, y, z), env frame; None means not rotated."""
    scale: Scale | None = None
    """Size relative to the model file along x, y, z; None means 1."""
    controllers: list[ControllerCfg] | None = None
    """Controllers that actions may address; None means none."""
    sensors: list[SensorCfg] | None = None
    """Sensors that appear in the observations; None means none."""

    _controllers_by_type = items_by_type('controllers', ControllerCfg)
    _sensors_by_type = items_by_type('sensors', SensorCfg)
