"""Fourier GR1, a humanoid with hands, of 54 joints."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    GR1MoveBySpeedControllerCfg,
    GR1TeleOpControllerCfg,
    InverseKinematicsControllerCfg,
    ground_moves,
)
from internutopia_extension.configs.joint_names import GR1_54, GR1_TELEOP_54
from internutopia_extension.configs.sensors import RepCameraCfg

_ARM = 'shoulder', 'elbow', 'wrist'

move_by_speed_cfg = GR1MoveBySpeedControllerCfg(
    name='move_by_speed',
    joint_names=GR1_54,
    policy_weights_path=gm.ASSET_PATH + '/robots/gr1/policy/move_by_speed/gr1_policy.onnx',
)

move_to_point_cfg, move_along_path_cfg, rotate_cfg, move_by_discrete_cfg, move_by_flash_cfg = ground_moves(
    move_by_speed_cfg, rotation_speeds=(4.0, 4.0, 4.0), thresholds=(0.05, 0.1, 0.05)
)

teleop_cfg = GR1TeleOpControllerCfg(name='teleop', joint_names=GR1_TELEOP_54)

left_arm_ik_cfg, right_arm_ik_cfg = (
    InverseKinematicsControllerCfg(
        name=f'{side}_arm_ik_controller',
        end_effector_frame_name=f'{side}_hand_pitch_link',
        joint_names=[name for name in GR1_54 if name.startswith(f'{side}_') and name.split('_')[1] in _ARM],
        threshold=0.02,
        reference='robot',
    )
    for side in ('left', 'right')
)

camera_left_cfg = RepCameraCfg(name='camera_left', prim_path='head_yaw_link/CameraLeft', resolution=(1280, 720))

camera_right_cfg = RepCameraCfg(name='camera_right', prim_path='head_yaw_link/CameraRight', resolution=(1280, 720))


class GR1RobotCfg(RobotCfg):
    """Fourier GR1."""

    type: str = 'GR1Robot'
    name: str = 'gr1'
    prim_path: str = '/gr1'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/gr1/gr1.usd'
