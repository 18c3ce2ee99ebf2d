"""Config of H1's walking policy."""

from internutopia.config.fields import PathStr
from internutopia.macros import gm
from internutopia_extension.configs.controllers.move_by_speed_controller import MoveBySpeedControllerCfg
from internutopia_extension.configs.joint_names import H1_19


class H1MoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """H1's walking policy."""

    type: str = 'H1MoveBySpeedController'
    joint_names: list[str] | None = H1_19
    policy_weights_path: PathStr = gm.ASSET_PATH + '/robots/h1/policy/move_by_speed/h1_loco_model_20000.pt'
