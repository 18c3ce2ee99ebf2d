"""Walking controller of GR1."""

from __future__ import annotations

import numpy as np

from internutopia.core.robot.controller import BaseController
from internutopia_extension.configs.joint_names import GR1_54
from internutopia_extension.controllers.upper_body import UpperBodyMoveBySpeedController

_UPPER = GR1_54[12:]


@BaseController.register('GR1MoveBySpeedController')
class GR1MoveBySpeedController(UpperBodyMoveBySpeedController):
    """Walking controller of GR1. The upper body is waist, head, arms and hands, 42 joints; elbows bent by default."""

    batched = True
    upper_joints = _UPPER
    upper_default = np.array([-1.25 if 'elbow_pitch' in name else 0.0 for name in _UPPER], np.float32)
    default_height = 0.9
