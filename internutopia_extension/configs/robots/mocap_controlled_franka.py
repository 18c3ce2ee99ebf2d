"""Franka Panda moved by a captured person."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    FrankaMocapTeleopControllerCfg,
    GripperControllerCfg,
    LayoutEditMocapControllerCfg,
    RMPFlowControllerCfg,
)
from internutopia_extension.configs.robots.franka import arm_ik_cfg
from internutopia_extension.configs.sensors import LayoutEditMocapControlledCameraCfg, MocapControlledCameraCfg

rmpflow_controller_cfg = RMPFlowControllerCfg(
    name='rmpflow_controller',
    robot_description_path=arm_ik_cfg.robot_description_path,
    robot_urdf_path=arm_ik_cfg.robot_urdf_path,
    rmpflow_config_path=gm.ASSET_PATH + '/robots/franka/franka_rmpflow_common.yaml',
    end_effector_frame_name=arm_ik_cfg.end_effector_frame_name,
)

gripper_controller_cfg = GripperControllerCfg(name='gripper_controller')

teleop_cfg = FrankaMocapTeleopControllerCfg(
    name='franka_mocap_teleop_controller',
    scale=(0.25, 0.75, 0.75),
    target_position=(0.0, 0.0, 1.0),
    origin_xyz=(0.46, 0.0, 0.38),
    origin_xyz_angle=(0.0, 0.0, 0.0),
    sub_controllers=[rmpflow_controller_cfg, gripper_controller_cfg],
)

# The doubled 'assets' in the paths of the hands is where asset folders made for 2.x have them.
layout_cfg = LayoutEditMocapControllerCfg.model_validate(
    {
        'name': 'layout_edit_mocap_controller',
        'scale': (0.25, 0.75, 0.75),
        'target_position': (0.0, 0.0, 1.0),
        'rh_origin_xyz': (-0.38, -0.2, 1.2),
        'lh_origin_xyz': (-0.38, 0.1, 1.2),
        'origin_xyz_angle': (0.0, 0.0, 0.0),
        'hand_scale': [0.01] * 3,
        'right_hand_path': gm.ASSET_PATH + '/assets/objects/hand/right_hand.usd',
        'left_hand_path': gm.ASSET_PATH + '/assets/objects/hand/left_hand.usd',
        'right_hand_prim_path': '/World/right_hand',
        'left_hand_prim_path': '/World/left_hand',
        'save_asset_path': 'InternUtopia/out',
        'save_robot': False,
        'sub_controllers': [rmpflow_controller_cfg],
    }
)

lh_controlled_camera_cfg = MocapControlledCameraCfg(
    name='lh_controlled_camera',
    prim_path='logo_link/lh_controlled_camera',
    translation=(0.0, 0.0, 5.0),
    orientation=(0.70710678, 0.0, 0.70710678, 0.0),
)

layout_controlled_camera_cfg = LayoutEditMocapControlledCameraCfg(
    name='layout_controlled_camera',
    prim_path='Camera/layout_controlled_camera',
    translation=(0.11, -0.04, 6.5),
    orientation=(0.70710678, 0.0, 0.70710678, 0.0),
)


class MocapControlledFrankaRobotCfg(RobotCfg):
    """Franka Panda moved by a captured person."""

    type: str = 'MocapControlledFrankaRobot'
    name: str = 'mocap_controlled_franka'
    prim_path: str = '/mocap_controlled_franka'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/franka/mocap_teleop_franka.usd'
