"""Config of the differential drive."""

from internutopia.config.fields import PositiveFloat
from internutopia.config.robot import ControllerCfg


class DifferentialDriveControllerCfg(ControllerCfg):
    """Differential drive: turns forward (m/s) and rotation (rad/s) speeds into the velocities of two wheels."""

    type: str = 'DifferentialDriveController'
    wheel_radius: PositiveFloat
    """Radius of the wheels at scale 1, m."""
    wheel_base: PositiveFloat
    """Distance between the wheels at scale 1, m."""
