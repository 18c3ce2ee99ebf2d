"""Config of GR1's walking policy."""

from internutopia_extension.configs.controllers.move_by_speed_controller import MoveBySpeedControllerCfg


class GR1MoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """GR1's walking policy, at a commanded base height."""

    type: str = 'GR1MoveBySpeedController'
