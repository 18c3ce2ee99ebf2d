"""Robots on legs: Unitree Aliengo, Go2, G1, H1 without and with hands, Fourier GR1 (GR1T2); gains and home poses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives
from internutopia.util.conventions import ASSET_JOINTS
from internutopia_extension.configs.joint_names import G1_SIM, GR1_54, GR1_DOF_54, H1_19

T = TypeVar('T')


def both_sides(values: Mapping[str, T]) -> dict[str, T]:
    """Return the same values for the joints of both sides: `knee` for `left_knee_joint` and `right_knee_joint`."""
    return {f'{side}_{joint}_joint': value for side in ('left', 'right') for joint, value in values.items()}


def drives_of(gains: Mapping[str, tuple[float, float]]) -> Drives:
    """Return drives with stiffness [N·m/rad] and damping [N·m·s/rad] by joint name."""
    return Drives({joint: kp for joint, (kp, _) in gains.items()}, {joint: kd for joint, (_, kd) in gains.items()})


class LeggedRobot(BaseRobot):
    """A floating base on legs, with drives that hold its joints."""

    fixed_base = False
    at_root = True

    def set_gains(self) -> None:
        """Set the gains of this class again, after they were changed at run time."""
        gains = [self.drives.gains(name) for name in self.articulation.dof_names]
        self.articulation.set_gains([kp for kp, _ in gains], [kd for _, kd in gains])


def _on_four_legs(**home: float) -> Mapping[str, float]:
    return MappingProxyType({f'{leg}_{name}_joint': home[name] for leg in ('FL', 'FR', 'RL', 'RR') for name in home})


@BaseRobot.register('AliengoRobot')
class AliengoRobot(LeggedRobot):
    """Unitree Aliengo, a quadruped with 12 driven joints; its pose is that of its base."""

    batched = True
    drives = Drives(stiffness=40.0, damping=2.0)  # InternUtopia 2.2.1 (MIT), class AliengoRobot
    home = _on_four_legs(hip=0.0, thigh=0.8, calf=-1.5)  # [rad]: the same, its locomotion controller
    base_link = 'base'
    feet = ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')


@BaseRobot.register('Go2Robot')
class Go2Robot(LeggedRobot):
    """Unitree Go2, a quadruped with 12 driven joints; its pose is that of its base."""

    batched = True
    # stiffness: unitree_mujoco (BSD-3-Clause), stand_go2.py; damping: that of the joints in mujoco_menagerie's model
    drives = Drives(stiffness=50.0, damping=2.0)
    home = _on_four_legs(hip=0.0, thigh=0.9, calf=-1.8)  # [rad]: mujoco_menagerie unitree_go2, keyframe home
    base_link = 'base'
    feet = ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')


# Gains [N·m/rad, N·m·s/rad] by joint, the same left and right, and the home pose [rad]: InternUtopia 2.2.1 (MIT), class
# G1Robot and the G1 locomotion controller.
_G1_GAINS = {
    **dict.fromkeys(('hip_pitch', 'hip_roll', 'hip_yaw'), (150.0, 2.0)),
    'knee': (300.0, 4.0),
    **dict.fromkeys(('ankle_pitch', 'ankle_roll'), (50.0, 5.0)),
    **dict.fromkeys(('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw'), (200.0, 4.0)),
    'elbow': (100.0, 1.0),
    **dict.fromkeys(('wrist_roll', 'wrist_pitch', 'wrist_yaw'), (20.0, 0.5)),
}
# The waist's roll and pitch are locked in InternUtopia's robot; here drives hold them, with the gains in
# deploy_real/configs/g1.yaml of unitree_rl_gym (BSD-3-Clause).
_G1_WAIST_GAINS = {
    'waist_yaw_joint': (300.0, 5.0),
    'waist_roll_joint': (300.0, 3.0),
    'waist_pitch_joint': (300.0, 3.0),
}
_G1_HOME = {'hip_pitch': -0.1, 'knee': 0.3, 'ankle_pitch': -0.2}

ASSET_JOINTS['robots/g1/g1.xml'] = G1_SIM


@BaseRobot.register('G1Robot')
class G1Robot(LeggedRobot):
    """Unitree G1, a humanoid with 29 driven joints; its pose is that of its pelvis."""

    batched = True
    drives = drives_of(both_sides(_G1_GAINS) | _G1_WAIST_GAINS)
    home = MappingProxyType(both_sides(_G1_HOME))
    base_link = 'pelvis'
    feet = ('left_ankle_roll_link', 'right_ankle_roll_link')


# Stiffness [N·m/rad] and damping [N·m·s/rad] by joint, the same left and right, and the home pose [rad]: InternUtopia
# 2.2.1 (MIT), class GR1Robot and the GR1 locomotion controller.
_GR1_GAINS = {
    'hip_roll': (251.625, 14.72),
    'hip_yaw': (362.52, 10.0833),
    **dict.fromkeys(('hip_pitch', 'knee_pitch'), (200.0, 11.0)),
    **dict.fromkeys(('ankle_pitch', 'ankle_roll'), (10.9805, 0.6)),
    **dict.fromkeys(('shoulder_pitch', 'shoulder_roll'), (92.85, 2.575)),
    **dict.fromkeys(('shoulder_yaw', 'elbow_pitch', 'wrist_yaw'), (112.06, 3.1)),
    **dict.fromkeys(('wrist_roll', 'wrist_pitch'), (10.0, 1.0)),
}
_GR1_WAIST_GAINS = {f'waist_{axis}_joint': (350.0, 15.0) for axis in ('yaw', 'pitch', 'roll')}
_GR1_HEAD_GAINS = {f'head_{axis}_joint': (112.06, 3.1) for axis in ('roll', 'pitch', 'yaw')}
_GR1_HAND_GAINS = {joint: (5.0, 2.0) for joint in GR1_54 if joint.startswith(('L_', 'R_'))}
# Two dampings that may be swapped there (right: 1.0 and 2.0); kept, so that commands act here as they do there
_GR1_ODD_GAINS = {'left_wrist_pitch_joint': (10.0, 2.0), 'L_thumb_distal_joint': (5.0, 1.0)}
_GR1_HOME = {'hip_pitch': -0.2618, 'knee_pitch': 0.5236, 'ankle_pitch': -0.2618, 'elbow_pitch': -0.3}
_GR1_HOME_SHOULDERS = {'left_shoulder_roll_joint': 0.2, 'right_shoulder_roll_joint': -0.2}

ASSET_JOINTS['robots/gr1/gr1.xml'] = GR1_DOF_54  # the tree of that asset begins at the torso


@BaseRobot.register('GR1Robot')
class GR1Robot(LeggedRobot):
    """Fourier GR1, a humanoid with 54 driven joints, fingers included; its pose is that of its torso.

    Fingers close towards negative angles, thumbs (pitch, distal) towards positive ones.
    """

    batched = True
    drives = drives_of(both_sides(_GR1_GAINS) | _GR1_WAIST_GAINS | _GR1_HEAD_GAINS | _GR1_HAND_GAINS | _GR1_ODD_GAINS)
    home = MappingProxyType(both_sides(_GR1_HOME) | _GR1_HOME_SHOULDERS)
    base_link = 'torso_link'
    feet = ('left_foot_roll_link', 'right_foot_roll_link')


# Gains [N·m/rad, N·m·s/rad] by joint, the same left and right, and the home pose [rad]: InternUtopia 2.2.1 (MIT), class
# H1Robot and the H1 locomotion controller.
_H1_GAINS = {
    **dict.fromkeys(('hip_yaw', 'hip_roll', 'hip_pitch'), (200.0, 5.0)),
    'knee': (300.0, 6.0),
    'ankle': (40.0, 2.0),
    **dict.fromkeys(('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow'), (100.0, 2.0)),
}
_H1_TORSO_GAINS = (300.0, 6.0)
_H1_HOME = {'hip_pitch': -0.4, 'knee': 0.8, 'ankle': -0.4}


@BaseRobot.register('H1Robot')
class H1Robot(LeggedRobot):
    """Unitree H1, a humanoid with 19 driven joints; its pose is that of its pelvis."""

    batched = True
    drives = drives_of(both_sides(_H1_GAINS) | {'torso_joint': _H1_TORSO_GAINS})
    home = MappingProxyType(both_sides(_H1_HOME))
    base_link = 'pelvis'
    feet = ('left_ankle_link', 'right_ankle_link')
    synonyms = MappingProxyType({joint.removesuffix('_joint'): joint for joint in H1_19})  # those of mujoco_menagerie

    def get_ankle_height(self) -> float:
        """Return the height of the lower ankle link in the env frame [m]."""
        ankles = (self.articulation.body(f'{side}_ankle_link') for side in ('left', 'right'))
        return min(float(ankle.get_pose()[0][..., 2]) for ankle in ankles)


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
