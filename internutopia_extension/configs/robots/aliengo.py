"""Unitree Aliengo, a quadruped of 12 joints."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import AliengoMoveBySpeedControllerCfg, ground_moves
from internutopia_extension.configs.joint_names import ALIENGO_12
from internutopia_extension.configs.sensors import RepCameraCfg

move_by_speed_cfg = AliengoMoveBySpeedControllerCfg(
    name='move_by_speed',
    joint_names=ALIENGO_12,
    policy_weights_path=gm.ASSET_PATH + '/robots/aliengo/policy/move_by_speed/aliengo_loco_model_4000.pt',
    policies={'rough': gm.ASSET_PATH + '/robots/aliengo/move_by_speed_rough.onnx'},
)

move_to_point_cfg, move_along_path_cfg, rotate_cfg, move_by_discrete_cfg, move_by_flash_cfg = ground_moves(
    move_by_speed_cfg, rotation_speeds=(4.0, 4.0, 2.0), thresholds=(0.05, 0.1, 0.05)
)

camera_cfg = RepCameraCfg(name='camera', prim_path='trunk/Camera')


class AliengoRobotCfg(RobotCfg):
    """Unitree Aliengo."""

    type: str = 'AliengoRobot'
    name: str = 'aliengo'
    prim_path: str = '/aliengo'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/aliengo/aliengo_camera.usd'
