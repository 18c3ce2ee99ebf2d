"""NVIDIA Jetbot, a small car with two driven wheels."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import DifferentialDriveControllerCfg, ground_moves
from internutopia_extension.configs.sensors import RepCameraCfg

move_by_speed_cfg = DifferentialDriveControllerCfg(name='move_by_speed', wheel_base=0.1125, wheel_radius=0.03)

move_to_point_cfg, move_along_path_cfg, rotate_cfg, move_by_discrete_cfg, move_by_flash_cfg = ground_moves(
    move_by_speed_cfg, rotation_speeds=(1.0, 1.0, 2.0), thresholds=(0.1, 0.1, 0.02)
)

camera_cfg = RepCameraCfg(name='camera', prim_path='chassis/rgb_camera/jetbot_camera', resolution=(640, 360))


class JetbotRobotCfg(RobotCfg):
    """NVIDIA Jetbot."""

    type: str = 'JetbotRobot'
    name: str = 'jetbot'
    prim_path: str = '/World/jetbot'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/jetbot/jetbot.usd'
