"""Configs of controllers. All of them keep unknown fields."""

from internutopia_extension.configs.controllers.actuator_controller import ActuatorControllerCfg
from internutopia_extension.configs.controllers.aliengo_move_by_speed_controller import AliengoMoveBySpeedControllerCfg
from internutopia_extension.configs.controllers.dd_controller import DifferentialDriveControllerCfg
from internutopia_extension.configs.controllers.discrete_controllers import (
    DiscreteMoveControllerCfg,
    FlashControllerCfg,
)
from internutopia_extension.configs.controllers.franka_mocap_teleop_controller import FrankaMocapTeleopControllerCfg
from internutopia_extension.configs.controllers.g1_move_by_speed_controller import G1MoveBySpeedControllerCfg
from internutopia_extension.configs.controllers.gr1_move_by_speed_controller import GR1MoveBySpeedControllerCfg
from internutopia_extension.configs.controllers.gr1_teleop_controller import GR1TeleOpControllerCfg
from internutopia_extension.configs.controllers.gripper_controller import GripperControllerCfg
from internutopia_extension.configs.controllers.h1_move_by_speed_controller import H1MoveBySpeedControllerCfg
from internutopia_extension.configs.controllers.ik_controller import InverseKinematicsControllerCfg
from internutopia_extension.configs.controllers.joint_controller import JointControllerCfg
from internutopia_extension.configs.controllers.layout_edit_mocap_controller import LayoutEditMocapControllerCfg
from internutopia_extension.configs.controllers.move_along_path_points_controller import (
    MoveAlongPathPointsControllerCfg,
)
from internutopia_extension.configs.controllers.move_by_speed_controller import MoveBySpeedControllerCfg
from internutopia_extension.configs.controllers.move_to_point_by_speed_controller import MoveToPointBySpeedControllerCfg
from internutopia_extension.configs.controllers.recover_controller import RecoverControllerCfg
from internutopia_extension.configs.controllers.rmpflow_controller import RMPFlowControllerCfg
from internutopia_extension.configs.controllers.rotate_controller import RotateControllerCfg

__all__ = [
    'ActuatorControllerCfg',
    'AliengoMoveBySpeedControllerCfg',
    'DifferentialDriveControllerCfg',
    'DiscreteMoveControllerCfg',
    'FlashControllerCfg',
    'FrankaMocapTeleopControllerCfg',
    'G1MoveBySpeedControllerCfg',
    'GR1MoveBySpeedControllerCfg',
    'GR1TeleOpControllerCfg',
    'GripperControllerCfg',
    'H1MoveBySpeedControllerCfg',
    'InverseKinematicsControllerCfg',
    'JointControllerCfg',
    'LayoutEditMocapControllerCfg',
    'MoveAlongPathPointsControllerCfg',
    'MoveBySpeedControllerCfg',
    'MoveToPointBySpeedControllerCfg',
    'RMPFlowControllerCfg',
    'RecoverControllerCfg',
    'RotateControllerCfg',
]
