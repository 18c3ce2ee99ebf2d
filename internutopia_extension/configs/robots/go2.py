"""Unitree Go2, a quadruped of 12 joints."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import MoveBySpeedControllerCfg, ground_moves
from internutopia_extension.configs.joint_names import ALIENGO_12
from internutopia_extension.configs.sensors import RepCameraCfg

move_by_speed_cfg = MoveBySpeedControllerCfg(
    name='move_by_speed',
    hold_heading=True,
    hold_position=True,
    joint_names=ALIENGO_12,
    policy_weights_path=gm.ASSET_PATH + '/robots/go2/move_by_speed.onnx',
)

move_to_point_cfg, move_along_path_cfg, rotate_cfg, move_by_discrete_cfg, move_by_flash_cfg = ground_moves(
    move_by_speed_cfg, rotation_speeds=(4.0, 4.0, 2.0), thresholds=(0.05, 0.1, 0.05)
)

camera_cfg = RepCameraCfg(name='camera', prim_path='Head_upper/Camera')


class Go2RobotCfg(RobotCfg):
    """Unitree Go2."""

    type: str = 'Go2Robot'
    name: str = 'go2'
    prim_path: str = '/go2'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/go2/go2.xml'
