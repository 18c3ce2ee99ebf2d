"""Config of motion-capture teleoperation of a Franka arm."""

from internutopia.config.fields import Vector
from internutopia.config.robot import ControllerCfg


class FrankaMocapTeleopControllerCfg(ControllerCfg):
    """Teleoperation by the right hand of a captured person; needs an RMPFlow and a gripper controller below it."""

    type: str = 'FrankaMocapTeleopController'
    scale: Vector
    """Arm motion per hand motion along x, y, z."""
    target_position: Vector
    """Point that the hand-held camera faces (x, y, z), m, env frame."""
    origin_xyz: Vector | None = None
    """Arm position for the rest position of the hand (x, y, z), m, env frame; None means the class's own."""
    origin_xyz_angle: Vector | None = None
    """Turn of the captured person about x, y, z, rad; None means none."""
