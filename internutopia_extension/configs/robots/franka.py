"""Franka Panda, a fixed arm of 7 joints with a two-finger gripper."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import GripperControllerCfg, InverseKinematicsControllerCfg

arm_ik_cfg = InverseKinematicsControllerCfg(
    name='arm_ik_controller',
    robot_description_path=gm.ASSET_PATH + '/robots/franka/rmpflow/robot_descriptor.yaml',
    robot_urdf_path=gm.ASSET_PATH + '/robots/franka/lula_franka_gen.urdf',
    end_effector_frame_name='right_gripper',
    threshold=0.01,
)

gripper_cfg = GripperControllerCfg(name='gripper_controller')


class FrankaRobotCfg(RobotCfg):
    """Franka Panda."""

    type: str = 'FrankaRobot'
    name: str = 'franka'
    prim_path: str = '/franka'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/franka/franka.usd'
