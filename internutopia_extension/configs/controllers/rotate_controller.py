"""Config of turning on the spot."""

from pydantic import FiniteFloat

from internutopia.config.fields import NonNegativeFloat
from internutopia.config.robot import ControllerCfg


class RotateControllerCfg(ControllerCfg):
    """Turn to a yaw; needs a move-by-speed controller below it."""

    type: str = 'RotateController'
    rotation_speed: FiniteFloat | None = None
    """Rotation speed, rad/s; None means 3.0."""
    threshold: NonNegativeFloat | None = None
    """Yaw error below which the goal counts as reached, rad; None means 0.02."""
