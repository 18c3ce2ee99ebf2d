"""Unitree H1 with hands, of 45 joints."""

from __future__ import annotations

from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot
from internutopia_extension.configs.joint_names import H1_19
from internutopia_extension.robots.generic import both_sides, drives_of
from internutopia_extension.robots.h1 import H1Robot

# Gains [N·m/rad, N·m·s/rad]. None are published for the hands of this robot: they are those of GR1.
_WRIST_GAINS = both_sides({'hand': (10.0, 1.0)})
_FINGER_JOINTS = [
    *(f'thumb_{part}' for part in ('proximal_yaw', 'proximal_pitch', 'intermediate', 'distal')),
    *(f'{finger}_{part}' for finger in ('index', 'middle', 'ring', 'pinky') for part in ('proximal', 'intermediate')),
]
_FINGER_GAINS = {f'{side}_{joint}_joint': (5.0, 2.0) for side in ('L', 'R') for joint in _FINGER_JOINTS}
HAND_JOINTS = (*_WRIST_GAINS, *_FINGER_GAINS)


@BaseRobot.register('H1WithHandRobot')
class H1WithHandRobot(H1Robot):
    """Unitree H1 with hands, a humanoid with 45 driven joints, fingers included; otherwise like H1.

    Fingers and thumbs close towards positive angles.
    """

    batched = True
    drives = drives_of({joint: H1Robot.drives.gains(joint) for joint in H1_19} | _WRIST_GAINS | _FINGER_GAINS)

    def get_robot_ik_base(self) -> IRigidBody:
        """Return the link that arm targets of reference `arm_base` are relative to."""
        return self.articulation.body('torso_link')
