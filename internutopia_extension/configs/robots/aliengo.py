"""Unitree Aliengo, a quadruped of 12 joints."""

from internutopia.config.fields import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    AliengoMoveBySpeedControllerCfg,
    DiscreteMoveControllerCfg,
    FlashControllerCfg,
    MoveAlongPathPointsControllerCfg,
    MoveToPointBySpeedControllerCfg,
    RotateControllerCfg,
)
from internutopia_extension.configs.joint_names import ALIENGO_12
from internutopia_extension.configs.sensors import RepCameraCfg

move_by_speed_cfg = AliengoMoveBySpeedControllerCfg(
    name='move_by_speed',
    joint_names=ALIENGO_12,
    policy_weights_path=gm.ASSET_PATH + '/robots/aliengo/policy/move_by_speed/aliengo_loco_model_4000.pt',
    policies={'rough': gm.ASSET_PATH + '/robots/aliengo/move_by_speed_rough.onnx'},
)

move_to_point_cfg = MoveToPointBySpeedControllerCfg(
    name='move_to_point',
    forward_speed=1.0,
    rotation_speed=4.0,
    threshold=0.05,
    sub_controllers=[move_by_speed_cfg],
)

move_along_path_cfg = MoveAlongPathPointsControllerCfg(
    name='move_along_path',
    forward_speed=1.0,
    rotation_speed=4.0,
    threshold=0.1,
    sub_controllers=[move_to_point_cfg],
)

rotate_cfg = RotateControllerCfg(name='rotate', rotation_speed=2.0, threshold=0.05, sub_controllers=[move_by_speed_cfg])

move_by_discrete_cfg = DiscreteMoveControllerCfg(name='move_by_discrete', sub_controllers=[move_by_speed_cfg])

move_by_flash_cfg = FlashControllerCfg(name='move_by_flash')

camera_cfg = RepCameraCfg(name='camera', prim_path='trunk/Camera')


class AliengoRobotCfg(RobotCfg):
    """Unitree Aliengo."""

    type: str = 'AliengoRobot'
    name: str = 'aliengo'
    prim_path: str = '/aliengo'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/aliengo/aliengo_camera.usd'
