"""Unitree H1, a humanoid of 19 joints."""

from internutopia.config.fields import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    DiscreteMoveControllerCfg,
    FlashControllerCfg,
    H1MoveBySpeedControllerCfg,
    JointControllerCfg,
    MoveAlongPathPointsControllerCfg,
    MoveToPointBySpeedControllerCfg,
    RecoverControllerCfg,
    RotateControllerCfg,
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

recover_cfg = RecoverControllerCfg(name='recover', recover_height=1.0, sub_controllers=[joint_controller])

h1_camera_cfg = RepCameraCfg(name='camera', prim_path='logo_link/Camera', resolution=(640, 480), depth=True)

h1_tp_camera_cfg = RepCameraCfg(name='tp_camera', prim_path='torso_link/TPCamera', resolution=(640, 480), depth=True)


class H1RobotCfg(RobotCfg):
    """Unitree H1."""

    type: str = 'H1Robot'
    name: str = 'h1'
    prim_path: str = '/h1'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/h1/h1.usd'
