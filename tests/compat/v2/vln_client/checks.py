"""Checks of whether an episode has failed: the robot lies on the ground, or does not get on."""

# pyright: reportMissingImports=false
# of modules that are not there before they are requested

from __future__ import annotations

from typing import Any

import numpy as np

MAX_PITCH, MAX_ROLL = 35.0, 15.0  # degrees
STUCK_STEPS, STUCK_DISTANCE, STUCK_ANGLE = 2500, 0.2, 15.0  # m, degrees


def has_fallen(robot: Any, ankle_height: float, lowest: float) -> bool:
    """Whether the robot leans too far, or its base is low above its feet.

    Args:
        robot: the robot.
        ankle_height: of the ankles when it stands [m].
        lowest: height of the base over the ground below which it has fallen [m].
    """
    from omni.isaac.core.utils.rotations import quat_to_euler_angles

    position, orientation = robot.articulation.get_world_pose()
    roll, pitch, _ = quat_to_euler_angles(orientation, degrees=True)
    ground = robot.get_ankle_height() - ankle_height
    return bool(abs(pitch) > MAX_PITCH or abs(roll) > MAX_ROLL or position[2] - ground < lowest)


class StuckCheck:
    """Counts the steps of actions, and looks after each so many whether the robot has moved or turned."""

    def __init__(self) -> None:
        self.steps = 0
        self._since: tuple[np.ndarray, float] | None = None

    def is_stuck(self, robot: Any) -> bool:
        """Count a step."""
        from omni.isaac.core.utils.rotations import quat_to_euler_angles

        self.steps += 1
        if self._since is not None and self.steps % STUCK_STEPS:
            return False
        position, orientation = robot.articulation.get_world_pose()
        yaw = float(quat_to_euler_angles(orientation, degrees=True)[2])
        before, self._since = self._since, (position[:2], yaw)
        if before is None:
            return False
        turned = abs((yaw - before[1] + 180) % 360 - 180)
        return bool(np.linalg.norm(position[:2] - before[0]) < STUCK_DISTANCE and turned < STUCK_ANGLE)
