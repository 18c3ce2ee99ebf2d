"""Walking controller of Aliengo."""

from __future__ import annotations

from internutopia.core.robot.controller import BaseController
from internutopia_extension.configs.joint_names import ALIENGO_12, ALIENGO_GYM_12
from internutopia_extension.controllers.move_by_speed_controller import MoveBySpeedController


@BaseController.register('AliengoMoveBySpeedController')
class AliengoMoveBySpeedController(MoveBySpeedController):
    """Trotting controller of Aliengo. Action: forward, lateral [m/s] and rotation speed [rad/s]."""

    batched = True
    joint_names_sim = ALIENGO_12
    joint_names_gym = ALIENGO_GYM_12
