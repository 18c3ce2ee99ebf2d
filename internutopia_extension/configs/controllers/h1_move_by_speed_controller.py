"""Config of H1's walking policy."""

from internutopia_extension.configs.controllers.move_by_speed_controller import MoveBySpeedControllerCfg


class H1MoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """H1's walking policy."""

    type: str = 'H1MoveBySpeedController'
