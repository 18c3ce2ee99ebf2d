"""Clearpath Ridgeback with a Franka Panda on it, a mobile manipulator."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    HolonomicDriveControllerCfg,
    JointControllerCfg,
    ground_moves,
)
from internutopia_extension.configs.joint_names import FRANKA_ARM_7, RIDGEBACK_BASE_3
from internutopia_extension.configs.robots.franka import arm_ik_cfg as arm_ik_cfg
from internutopia_extension.configs.robots.franka import gripper_cfg as gripper_cfg

move_by_speed_cfg = HolonomicDriveControllerCfg(name='move_by_speed', joint_names=RIDGEBACK_BASE_3)

move_to_point_cfg, move_along_path_cfg, rotate_cfg, move_by_discrete_cfg = ground_moves(
    move_by_speed_cfg, rotation_speeds=(4.0, 4.0, 2.0), thresholds=(0.02, 0.1, 0.02)
)[:4]

arm_joint_controller_cfg = JointControllerCfg(name='arm_joint_controller', joint_names=FRANKA_ARM_7)


class RidgebackFrankaRobotCfg(RobotCfg):
    """Clearpath Ridgeback with a Franka Panda."""

    type: str = 'RidgebackFrankaRobot'
    name: str = 'ridgeback_franka'
    prim_path: str = '/ridgeback_franka'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/ridgeback_franka/ridgeback_franka.xml'
