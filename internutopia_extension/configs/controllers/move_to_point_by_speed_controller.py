"""Config of going to a point."""

from pydantic import FiniteFloat

from internutopia.config.fields import NonNegativeFloat
from internutopia.config.robot import ControllerCfg


class MoveToPointBySpeedControllerCfg(ControllerCfg):
    """Straight motion to a point of the ground plane; needs a move-by-speed controller below it."""

    type: str = 'MoveToPointBySpeedController'
    forward_speed: FiniteFloat | None = None
    """Forward speed, m/s; None means 1.0."""
    rotation_speed: FiniteFloat | None = None
    """Rotation speed, rad/s; None means 8.0."""
    threshold: NonNegativeFloat | None = None
    """Planar distance below which the point counts as reached, m; None means 0.02."""
