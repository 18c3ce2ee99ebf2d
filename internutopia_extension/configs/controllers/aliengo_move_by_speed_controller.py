"""Config of Aliengo's walking policy."""

from internutopia_extension.configs.controllers.move_by_speed_controller import MoveBySpeedControllerCfg


class AliengoMoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """Aliengo's walking policy."""

    type: str = 'AliengoMoveBySpeedController'
