"""NVIDIA Jetbot, a small car with two driven wheels."""

from internutopia.config.fields import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    DifferentialDriveControllerCfg,
    DiscreteMoveControllerCfg,
    FlashControllerCfg,
    MoveAlongPathPointsControllerCfg,
    MoveToPointBySpeedControllerCfg,
    RotateControllerCfg,
)
from internutopia_extension.configs.sensors import RepCameraCfg

move_by_speed_cfg = DifferentialDriveControllerCfg(name='move_by_speed', wheel_base=0.1125, wheel_radius=0.03)

move_to_point_cfg = MoveToPointBySpeedControllerCfg(
    name='move_to_point',
    forward_speed=1.0,
    rotation_speed=1.0,
    threshold=0.1,
    sub_controllers=[move_by_speed_cfg],
)

move_along_path_cfg = MoveAlongPathPointsControllerCfg(
    name='move_along_path',
    forward_speed=1.0,
    rotation_speed=1.0,
    threshold=0.1,
    sub_controllers=[move_to_point_cfg],
)

rotate_cfg = RotateControllerCfg(name='rotate', rotation_speed=2.0, threshold=0.02, sub_controllers=[move_by_speed_cfg])

move_by_discrete_cfg = DiscreteMoveControllerCfg(name='move_by_discrete', sub_controllers=[move_by_speed_cfg])

move_by_flash_cfg = FlashControllerCfg(name='move_by_flash')

camera_cfg = RepCameraCfg(name='camera', prim_path='chassis/rgb_camera/jetbot_camera', resolution=(640, 360))


class JetbotRobotCfg(RobotCfg):
    """NVIDIA Jetbot."""

    type: str = 'JetbotRobot'
    name: str = 'jetbot'
    prim_path: str = '/World/jetbot'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/jetbot/jetbot.usd'
