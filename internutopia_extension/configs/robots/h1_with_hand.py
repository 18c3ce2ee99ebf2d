"""Unitree H1 with hands. It walks and turns as H1 does, with H1's controllers and its own policy."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    InverseKinematicsControllerCfg,
    JointControllerCfg,
    ground_moves,
)
from internutopia_extension.configs.robots import h1

joint_controller = h1.joint_controller.update()
move_by_speed_cfg = h1.move_by_speed_cfg.update(
    policy_weights_path=gm.ASSET_PATH + '/robots/h1_with_hand/move_by_speed.onnx',
    policies={'h1': h1.move_by_speed_cfg.policy_weights_path},
)

move_to_point_cfg, move_along_path_cfg, rotate_cfg, move_by_discrete_cfg, move_by_flash_cfg = ground_moves(
    move_by_speed_cfg, rotation_speeds=(4.0, 4.0, 2.0), thresholds=(0.05, 0.1, 0.05)
)

recover_cfg = h1.recover_cfg.update()

h1_with_hand_camera_cfg = h1.h1_camera_cfg.update()
h1_with_hand_tp_camera_cfg = h1.h1_tp_camera_cfg.update()

right_arm_joint_controller_cfg = JointControllerCfg(
    name='right_arm_joint_controller',
    joint_names=[f'right_{part}_joint' for part in ('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow')],
)

right_arm_ik_controller_cfg = InverseKinematicsControllerCfg(
    name='right_arm_ik_controller',
    robot_description_path=gm.ASSET_PATH + '/robots/h1_with_hand/right_arm_descriptor.yaml',
    robot_urdf_path=gm.ASSET_PATH + '/robots/h1_with_hand/h1_with_hand.urdf',
    end_effector_frame_name='right_hand_link',
    threshold=0.01,
)

left_arm_ik_controller_cfg = right_arm_ik_controller_cfg.update(
    name='left_arm_ik_controller',
    robot_description_path=gm.ASSET_PATH + '/robots/h1_with_hand/left_arm_descriptor.yaml',
    end_effector_frame_name='left_hand_link',
)


class H1WithHandRobotCfg(RobotCfg):
    """Unitree H1 with hands."""

    type: str = 'H1WithHandRobot'
    name: str = 'h1_with_hand'
    prim_path: str = '/h1_with_hand'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/h1_with_hand/h1_with_hand_rt_v2.usd'
