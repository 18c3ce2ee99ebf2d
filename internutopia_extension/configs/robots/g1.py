"""Unitree G1, a humanoid of 29 joints."""

from internutopia.config.base import PathStr
from internutopia.config.robot import RobotCfg
from internutopia.macros import gm
from internutopia_extension.configs.controllers import G1MoveBySpeedControllerCfg, ground_moves
from internutopia_extension.configs.joint_names import G1_SIM

move_by_speed_cfg = G1MoveBySpeedControllerCfg(
    name='move_by_speed',
    joint_names=G1_SIM,
    policy_weights_path=gm.ASSET_PATH + '/robots/g1/policy/move_by_speed/g1_15000.onnx',
    policies={'rough': gm.ASSET_PATH + '/robots/g1/move_by_speed_rough.onnx'},
)

move_to_point_cfg, move_along_path_cfg, rotate_cfg, move_by_discrete_cfg, move_by_flash_cfg = ground_moves(
    move_by_speed_cfg, rotation_speeds=(2.0, 4.0, 4.0), thresholds=(0.05, 0.1, 0.1)
)


class G1RobotCfg(RobotCfg):
    """Unitree G1."""

    type: str = 'G1Robot'
    name: str = 'g1'
    prim_path: str = '/g1'
    usd_path: PathStr | None = gm.ASSET_PATH + '/robots/g1/g1_29dof_color.usd'
