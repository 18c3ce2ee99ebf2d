"""Walking controller of G1."""

from __future__ import annotations

import numpy as np

from internutopia.core.robot.controller import BaseController
from internutopia_extension.configs.joint_names import G1_GYM, G1_SIM
from internutopia_extension.controllers.upper_body import UpperBodyMoveBySpeedController


@BaseController.register('G1MoveBySpeedController')
class G1MoveBySpeedController(UpperBodyMoveBySpeedController):
    """Walking controller of G1. The upper body is the waist's yaw joint and both arms, 15 joints."""

    batched = True
    joint_names_sim = G1_SIM
    joint_names_gym = G1_GYM
    upper_joints = G1_GYM[12:]
    upper_default = np.zeros(15, np.float32)
    default_height = 0.74
