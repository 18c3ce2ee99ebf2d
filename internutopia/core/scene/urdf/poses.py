"""Poses of URDF for MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.urdf.document import Pose


def quaternion(pose: Pose) -> NDArray[np.float64]:
    """`(w, x, y, z)` of roll, pitch, yaw about fixed axes."""
    quat = np.zeros(4)
    mujoco.mju_euler2Quat(quat, pose.rpy, 'XYZ')  # capitals: about axes that do not turn along
    return quat
