"""Fourier GR1 (GR1T2), the humanoid with hands, of 54 joints."""

from __future__ import annotations

from types import MappingProxyType

from internutopia.core.robot.robot import BaseRobot
from internutopia.util.conventions import ASSET_JOINTS
from internutopia_extension.configs.joint_names import GR1_54, GR1_DOF_54
from internutopia_extension.robots.generic import LeggedRobot, both_sides, drives_of

# Stiffness [N·m/rad] and damping [N·m·s/rad] by joint, the same left and right, and the home pose [rad]: InternUtopia
# 2.2.1 (MIT), class GR1Robot and the GR1 locomotion controller.
_GAINS = {
    'hip_roll': (251.625, 14.72),
    'hip_yaw': (362.52, 10.0833),
    **dict.fromkeys(('hip_pitch', 'knee_pitch'), (200.0, 11.0)),
    **dict.fromkeys(('ankle_pitch', 'ankle_roll'), (10.9805, 0.6)),
    **dict.fromkeys(('shoulder_pitch', 'shoulder_roll'), (92.85, 2.575)),
    **dict.fromkeys(('shoulder_yaw', 'elbow_pitch', 'wrist_yaw'), (112.06, 3.1)),
    **dict.fromkeys(('wrist_roll', 'wrist_pitch'), (10.0, 1.0)),
}
_WAIST_GAINS = {f'waist_{axis}_joint': (350.0, 15.0) for axis in ('yaw', 'pitch', 'roll')}
_HEAD_GAINS = {f'head_{axis}_joint': (112.06, 3.1) for axis in ('roll', 'pitch', 'yaw')}
_HAND_GAINS = {joint: (5.0, 2.0) for joint in GR1_54 if joint.startswith(('L_', 'R_'))}
# Two dampings that may be swapped there (right: 1.0 and 2.0); kept, so that commands act here as they do there
_ODD_GAINS = {'left_wrist_pitch_joint': (10.0, 2.0), 'L_thumb_distal_joint': (5.0, 1.0)}
_HOME = {'hip_pitch': -0.2618, 'knee_pitch': 0.5236, 'ankle_pitch': -0.2618, 'elbow_pitch': -0.3}
_HOME_SHOULDERS = {'left_shoulder_roll_joint': 0.2, 'right_shoulder_roll_joint': -0.2}

ASSET_JOINTS['robots/gr1/gr1.xml'] = GR1_DOF_54  # the tree of that asset begins at the torso


@BaseRobot.register('GR1Robot')
class GR1Robot(LeggedRobot):
    """Fourier GR1, a humanoid with 54 driven joints, fingers included; its pose is that of its torso.

    Fingers close towards negative angles, thumbs (pitch, distal) towards positive ones.
    """

    batched = True
    drives = drives_of(both_sides(_GAINS) | _WAIST_GAINS | _HEAD_GAINS | _HAND_GAINS | _ODD_GAINS)
    home = MappingProxyType(both_sides(_HOME) | _HOME_SHOULDERS)
    base_link = 'torso_link'
    feet = ('left_foot_roll_link', 'right_foot_roll_link')
