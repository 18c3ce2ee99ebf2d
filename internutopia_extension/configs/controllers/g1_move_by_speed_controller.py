"""Config of G1's walking policy."""

from internutopia_extension.configs.controllers.move_by_speed_controller import MoveBySpeedControllerCfg


class G1MoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """G1's walking policy, at a commanded base height."""

    type: str = 'G1MoveBySpeedController'
