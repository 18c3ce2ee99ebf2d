"""Unitree G1, the humanoid with 29 joints."""

from __future__ import annotations

from types import MappingProxyType

from internutopia.core.robot.robot import BaseRobot
from internutopia.util.conventions import ASSET_JOINTS
from internutopia_extension.configs.joint_names import G1_SIM
from internutopia_extension.robots.generic import LeggedRobot, both_sides, drives_of

# Gains [N·m/rad, N·m·s/rad] by joint, the same left and right, and the home pose [rad]: InternUtopia 2.2.1 (MIT), class
# G1Robot and the G1 locomotion controller.
_GAINS = {
    **dict.fromkeys(('hip_pitch', 'hip_roll', 'hip_yaw'), (150.0, 2.0)),
    'knee': (300.0, 4.0),
    **dict.fromkeys(('ankle_pitch', 'ankle_roll'), (50.0, 5.0)),
    **dict.fromkeys(('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw'), (200.0, 4.0)),
    'elbow': (100.0, 1.0),
    **dict.fromkeys(('wrist_roll', 'wrist_pitch', 'wrist_yaw'), (20.0, 0.5)),
}
# The waist's roll and pitch are locked in InternUtopia's robot; here drives hold them, with the gains in
# deploy_real/configs/g1.yaml of unitree_rl_gym (BSD-3-Clause).
_WAIST_GAINS = {
    'waist_yaw_joint': (300.0, 5.0),
    'waist_roll_joint': (300.0, 3.0),
    'waist_pitch_joint': (300.0, 3.0),
}
_HOME = {'hip_pitch': -0.1, 'knee': 0.3, 'ankle_pitch': -0.2}

ASSET_JOINTS['robots/g1/g1.xml'] = G1_SIM


@BaseRobot.register('G1Robot')
class G1Robot(LeggedRobot):
    """Unitree G1, a humanoid with 29 driven joints; its pose is that of its pelvis."""

    batched = True
    drives = drives_of(both_sides(_GAINS) | _WAIST_GAINS)
    home = MappingProxyType(both_sides(_HOME))
    base_link = 'pelvis'
    feet = ('left_ankle_roll_link', 'right_ankle_roll_link')
