"""Unitree H1, a humanoid of 19 joints."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    H1MoveBySpeedControllerCfg,
    JointControllerCfg,
    RecoverControllerCfg,
    ground_moves,
)
from internutopia_extension.configs.joint_names import H1_19
from internutopia_extension.configs.sensors import RepCameraCfg

joint_controller = JointControllerCfg(name='joint_controller', joint_names=H1_19)

move_by_speed_cfg = H1MoveBySpeedControllerCfg(
    name='move_by_speed',
    joint_names=H1_19,
    policy_weights_path=gm.ASSET_PATH + '/robots/h1/policy/move_by_speed/h1_loco_model_20000.pt',
    policies={'rough': gm.ASSET_PATH + '/robots/h1/move_by_speed_rough.onnx'},
)

move_to_point_cfg, move_along_path_cfg, rotate_cfg, move_by_discrete_cfg, move_by_flash_cfg = ground_moves(
    move_by_speed_cfg, rotation_speeds=(4.0, 4.0, 2.0), thresholds=(0.05, 0.1, 0.05)
)

recover_cfg = RecoverControllerCfg(name='recover', recover_height=1.0, sub_controllers=[joint_controller])

h1_camera_cfg = RepCameraCfg(name='camera', prim_path='logo_link/Camera', resolution=(640, 480), depth=True)

h1_tp_camera_cfg = RepCameraCfg(name='tp_camera', prim_path='torso_link/TPCamera', resolution=(640, 480), depth=True)


class H1RobotCfg(RobotCfg):
    """Unitree H1."""

    type: str = 'H1Robot'
    name: str = 'h1'
    prim_path: str = '/h1'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/h1/h1.usd'
