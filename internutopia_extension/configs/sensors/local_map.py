"""Config of the local map."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator
from typing_extensions import override

from internutopia.config.fields import PositiveFloat
from internutopia.config.robot import SensorCfg

_MOST = 1024  # pixels along one side


class LocalMapCfg(SensorCfg):
    """Map of the free space around the robot, seen from above."""

    name: str = 'local_map'
    type: str = 'LocalMap'
    size: PositiveFloat = 6.4
    """Width and depth of the shown area, m; the robot is in the middle."""
    resolution: PositiveFloat = 0.1
    """Width of a pixel, m; `size` is a multiple of it. The map itself has cells of 0.05 m."""

    @property
    def pixels(self) -> int:
        """Number of pixels along one side."""
        return round(self.size / self.resolution)

    @override
    def bytes_per_env(self) -> int:
        return self.pixels**2

    @model_validator(mode='after')
    def _check_pixels(self) -> Self:
        if not 1 <= self.size / self.resolution <= _MOST or abs(self.pixels * self.resolution - self.size) > 1e-6:
            raise ValueError(
                f'size={self.size} m must be 1 to {_MOST} times the resolution, {self.resolution} m, a whole number'
            )
        return self
