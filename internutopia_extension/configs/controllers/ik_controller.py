"""Config of inverse kinematics."""

from typing import Literal

from internutopia.core.config.fields import NonNegativeFloat, PathStr
from internutopia.core.config.robot import ControllerCfg


class InverseKinematicsControllerCfg(ControllerCfg):
    """Moves an end effector to a position and, if given, an orientation."""

    type: str = 'InverseKinematicsController'
    robot_description_path: PathStr
    """Description of the arm: which joints may move, and their default positions (YAML)."""
    robot_urdf_path: PathStr
    """Kinematics of the arm (URDF)."""
    end_effector_frame_name: str
    """Link of the URDF that is brought to the target."""
    threshold: NonNegativeFloat
    """Distance to the target below which it counts as reached, m at scale 1."""
    reference: Literal['world', 'robot', 'arm_base'] | None = None
    """Frame of the targets: the env's (`'world'`), the robot's or the arm base's; None means `'world'`."""
