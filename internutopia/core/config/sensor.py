"""Config of a sensor."""

from internutopia.core.config.base import BaseCfg
from internutopia.core.config.typed import TypedCfg

__all__ = ['BaseCfg', 'SensorCfg']


class SensorCfg(TypedCfg):
    """A sensor of a robot. Subclasses refuse unknown fields; `SensorCfg` itself keeps them."""

    name: str
    """Key of the sensor in the observations."""
    prim_path: str | None = None
    """Path of the sensor's prim relative to the robot's, without a leading slash; None where a type needs none."""
    type: str
    """Registered name of the sensor class."""
    enable: bool = True
    """Whether the sensor runs; one that is switched off costs nothing and has no observation."""

    def bytes_per_env(self) -> int:
        """Memory that the data of one env take, bytes, where they are large; 0 if that does not matter."""
        return 0
