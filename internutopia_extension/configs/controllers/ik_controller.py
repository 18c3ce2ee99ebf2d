"""Config of inverse kinematics."""

from typing import Literal

from internutopia.config.fields import NonNegativeFloat, PathStr, PositiveFloat
from internutopia.config.robot import ControllerCfg


class InverseKinematicsControllerCfg(ControllerCfg):
    """Motion of an end effector to a position and, if given, an orientation."""

    type: str = 'InverseKinematicsController'
    robot_description_path: PathStr = ''
    """Description of the arm for Isaac Sim (YAML). The embedded engine uses the robot's own model instead."""
    robot_urdf_path: PathStr = ''
    """Kinematics of the arm for Isaac Sim (URDF). The embedded engine uses the robot's own model instead."""
    end_effector_frame_name: str
    """Link that is brought to the target."""
    threshold: NonNegativeFloat
    """Distance to the target below which it counts as reached, m at scale 1."""
    reference: Literal['world', 'robot', 'arm_base'] | None = None
    """Frame of the targets: the env's (`'world'`), the robot's or the arm base's; None means `'world'`."""
    joint_names: list[str] | None = None
    """Joints that may move; None means all between the arm base and the end effector."""
    joint_speed: PositiveFloat = 1.5
    """Speed of the joint that has the longest way to the target, rad/s (sliding joints: m/s); the others keep pace."""
