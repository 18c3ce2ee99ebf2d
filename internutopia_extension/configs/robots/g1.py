"""Unitree G1, a humanoid of 29 joints."""

from internutopia.config.fields import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import (
    DiscreteMoveControllerCfg,
    FlashControllerCfg,
    G1MoveBySpeedControllerCfg,
    MoveAlongPathPointsControllerCfg,
    MoveToPointBySpeedControllerCfg,
    RotateControllerCfg,
)
from internutopia_extension.configs.joint_names import G1_SIM

move_by_speed_cfg = G1MoveBySpeedControllerCfg(
    name='move_by_speed',
    joint_names=G1_SIM,
    policy_weights_path=gm.ASSET_PATH + '/robots/g1/policy/move_by_speed/g1_15000.onnx',
    policies={'rough': gm.ASSET_PATH + '/robots/g1/move_by_speed_rough.onnx'},
)

move_to_point_cfg = MoveToPointBySpeedControllerCfg(
    name='move_to_point',
    forward_speed=1.0,
    rotation_speed=2.0,
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

rotate_cfg = RotateControllerCfg(name='rotate', rotation_speed=4.0, threshold=0.1, sub_controllers=[move_by_speed_cfg])

move_by_discrete_cfg = DiscreteMoveControllerCfg(name='move_by_discrete', sub_controllers=[move_by_speed_cfg])

move_by_flash_cfg = FlashControllerCfg(name='move_by_flash')


class G1RobotCfg(RobotCfg):
    """Unitree G1."""

    type: str = 'G1Robot'
    name: str = 'g1'
    prim_path: str = '/g1'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/g1/g1_29dof_color.usd'
