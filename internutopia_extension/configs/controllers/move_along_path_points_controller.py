"""Config of following a path."""

from pydantic import FiniteFloat

from internutopia.config.fields import NonNegativeFloat, PositiveFloat
from internutopia.config.robot import ControllerCfg


class MoveAlongPathPointsControllerCfg(ControllerCfg):
    """Motion through a list of points, one after the other; needs a move-to-point controller below it."""

    type: str = 'MoveAlongPathPointsController'
    name: str = 'move_along_path'
    forward_speed: FiniteFloat | None = None
    """Forward speed, m/s; None means 1.0."""
    rotation_speed: FiniteFloat | None = None
    """Rotation speed, rad/s; None means 8.0."""
    threshold: NonNegativeFloat | None = None
    """Planar distance below which a point counts as reached, m; None means 0.02."""
    look_ahead: PositiveFloat | None = None
    """Distance ahead on the path that the robot heads for, m, so that it goes around corners without a stop; None means
    straight for one point after the other, slowing down at each."""
