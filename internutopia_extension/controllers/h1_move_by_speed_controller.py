"""Walking controller of H1."""

from __future__ import annotations

from internutopia.core.robot.controller import BaseController
from internutopia_extension.configs.joint_names import H1_19, H1_GYM_19
from internutopia_extension.controllers.move_by_speed_controller import MoveBySpeedController


@BaseController.register('H1MoveBySpeedController')
class H1MoveBySpeedController(MoveBySpeedController):
    """Walking controller of H1, with or without hands. Action: forward, lateral [m/s] and rotation speed [rad/s]."""

    batched = True
    joint_names_sim = H1_19
    joint_names_gym = H1_GYM_19
