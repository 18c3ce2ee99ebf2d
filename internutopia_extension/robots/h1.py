"""Unitree H1, the humanoid with 19 joints."""

from __future__ import annotations

from types import MappingProxyType

from internutopia.core.robot.robot import BaseRobot
from internutopia_extension.configs.joint_names import H1_19
from internutopia_extension.robots.generic import LeggedRobot, both_sides, drives_of

# Gains [N·m/rad, N·m·s/rad] by joint, the same left and right, and the home pose [rad]: InternUtopia 2.2.1 (MIT), class
# H1Robot and the H1 locomotion controller.
_GAINS = {
    **dict.fromkeys(('hip_yaw', 'hip_roll', 'hip_pitch'), (200.0, 5.0)),
    'knee': (300.0, 6.0),
    'ankle': (40.0, 2.0),
    **dict.fromkeys(('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow'), (100.0, 2.0)),
}
_TORSO_GAINS = (300.0, 6.0)
_HOME = {'hip_pitch': -0.4, 'knee': 0.8, 'ankle': -0.4}


@BaseRobot.register('H1Robot')
class H1Robot(LeggedRobot):
    """Unitree H1, a humanoid with 19 driven joints; its pose is that of its pelvis."""

    batched = True
    drives = drives_of(both_sides(_GAINS) | {'torso_joint': _TORSO_GAINS})
    home = MappingProxyType(both_sides(_HOME))
    base_link = 'pelvis'
    feet = ('left_ankle_link', 'right_ankle_link')
    synonyms = MappingProxyType({joint.removesuffix('_joint'): joint for joint in H1_19})  # those of mujoco_menagerie

    def get_ankle_height(self) -> float:
        """Return the height of the lower ankle link in the env frame [m]."""
        ankles = (self.articulation.body(f'{side}_ankle_link') for side in ('left', 'right'))
        return min(float(ankle.get_pose()[0][..., 2]) for ankle in ankles)
