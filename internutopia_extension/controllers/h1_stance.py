"""H1 standing still: joint position targets that keep it upright on both feet.

With constant targets H1 falls: its two ankles together give 80 N·m/rad, gravity takes 530. So the ankles follow the
capture point, where the robot would come to rest if it were pushed no further:

- The centre of mass is `x` ahead of its set point, computed from the pelvis' pitch and the hips and knees (not from the
  ankles, so that it stays right when a foot tips). The capture point is at `xi = x + x' / OMEGA`.
- The ankles push with the torque that moves the centre of pressure beyond it, as far as feet and motors reach, plus a
  torque that keeps each foot level (also in the air). Their position targets are chosen such that the drive gives that
  torque: H1's ankle gains are part of the design.
- The hips bend with `xi`, which turns the trunk against the fall.
- Sideways, where H1 has no ankle joint, the leg of the lower side stretches and the other one bends, by roll and its
  rate; the hips lean against sideways velocity.
- Left and right hip rolls, hip pitches and ankles hold together twice as stiffly as their drives would. Otherwise the
  robot's weight, which slowly drags soft contacts along, narrows a narrow stance and widens a split until it falls.
- Everything else is held at a posture: home, shifted forward by 4 cm to the middle of the feet, with the static torque
  of each joint added, so that drives do not sag under the robot's weight.

Joints are in the order of `H1_GYM_19` everywhere. The targets are meant to be renewed at every physics step; every
fourth at 200 Hz will do.

Measured on the built-in model at 240 and 200 Hz, and with targets renewed at 50 Hz: stands for 60 s after a start at
home (0.981 m) and drops from 1.05 m, a little tilted, too; survives a sudden velocity of 0.4 m/s forward, 0.35 m/s
backward, 0.65 m/s sideways and 0.45 m/s along the diagonals.
"""

from __future__ import annotations

import numpy as np

from internutopia_extension.configs.joint_names import H1_GYM_19
from internutopia_extension.robots.h1 import H1Robot

# Chosen, between pushes from the front and from behind: where the centre of mass is kept, ahead of the ankles [m].
SET_POINT = 0.03

# Computed from the model and the set point by tools/tune_h1_stance.py.
HIP_SHIFT = 0.05813  # rad, added to the hips and taken from the ankles to get it there
COM_GRADIENT = np.array([0.8373, 0.6558, 0.3366])  # m/rad, centre of mass ahead of the ankles by pitch, hips, knees
HEIGHT = 0.9073  # m, of the centre of mass
WEIGHT = 582.1  # N
STATIC_TORQUES = {  # N m, left side, standing like this; roll has the other sign on the right
    'hip_roll': -25.89,
    'hip_pitch': -7.46,
    'knee': -40.13,
    'shoulder_pitch': -1.255,
    'elbow': -1.205,
}

# Found by trial: sideways and split gains by the damping of the closed loop's slowest modes, the others by the largest
# pushes survived in eight directions, with targets renewed at 240 Hz and at 50 Hz.
COP_GAIN = 2.0  # shift of the centre of pressure by shift of the capture point; 1 would just stop it
COP_RANGE = (-0.08, 0.135)  # m ahead of the ankles: the heel; what two ankles of 40 N m hold
FOOT_STIFFNESS, FOOT_DAMPING = 40.0, 3.0  # N m/rad, N m s/rad, keep each foot level
HIP_PITCH_GAIN = -2.0  # rad/m by capture point
HIP_ROLL_GAIN = 0.35  # rad s/m by sideways velocity
LEG_GAINS = (0.7, 0.05)  # rad/rad, rad s/rad, hip pitch by roll and by roll rate; the knee does twice as much
SPLIT_GAIN = 1.0  # rad/rad by half the difference of the left and the right joint
CAPTURE_LIMIT, SPEED_LIMIT, LEG_LIMIT = 0.3, 1.0, 0.3  # m, m/s, rad: beyond these it has fallen; keeps targets sane

OMEGA = np.sqrt(9.81 / HEIGHT)  # 1/s, of the inverted pendulum


def _rest_pose() -> tuple[np.ndarray, np.ndarray]:
    """Returns posture [rad] and the position targets [rad] that hold it against gravity, both `(19,)`."""
    posture, targets = np.zeros(19), np.zeros(19)
    shift = {'hip_pitch': HIP_SHIFT, 'ankle': -HIP_SHIFT}
    for i, name in enumerate(H1_GYM_19):
        side, _, joint = name.removesuffix('_joint').partition('_')
        mirror = -1 if side == 'right' and joint == 'hip_roll' else 1
        posture[i] = H1Robot.home.get(name, 0.0) + shift.get(joint, 0.0)
        targets[i] = posture[i] + mirror * STATIC_TORQUES.get(joint, 0.0) / H1Robot.drives.gains(name)[0]
    return posture, targets


POSTURE, REST_TARGETS = _rest_pose()
ANKLE_STIFFNESS, ANKLE_DAMPING = H1Robot.drives.gains('left_ankle_joint')
# Columns of the left and the right leg's joints.
HIP_ROLLS, HIP_PITCHES, KNEES, ANKLES = ([k, k + 5] for k in (1, 2, 3, 4))


def stance_targets(
    orientation: np.ndarray,
    angular_velocity: np.ndarray,
    linear_velocity: np.ndarray,
    joint_positions: np.ndarray,
    joint_velocities: np.ndarray,
) -> np.ndarray:
    """Returns joint position targets that keep H1 standing.

    Leading axes are free, but the same for all arguments.

    Args:
        orientation: `(..., 4)`, of the pelvis, unit quaternion (w, x, y, z).
        angular_velocity: `(..., 3)`, of the pelvis, world frame [rad/s].
        linear_velocity: `(..., 3)`, of the pelvis, world frame [m/s].
        joint_positions: `(..., 19)`, in the order of `H1_GYM_19` [rad].
        joint_velocities: `(..., 19)`, in the same order [rad/s].

    Returns:
        `(..., 19)`, in the same order [rad]. Ankle targets may lie beyond the joint limits; their torque counts.
    """
    pitch, roll, forward = _tilt_and_heading(orientation)
    left = np.stack([-forward[..., 1], forward[..., 0]], axis=-1)
    pitch_rate = np.sum(angular_velocity[..., :2] * left, axis=-1)
    roll_rate = np.sum(angular_velocity[..., :2] * forward, axis=-1)
    sideways = np.sum(linear_velocity[..., :2] * left, axis=-1)

    lean = _com_shift(pitch, joint_positions - POSTURE)
    capture = np.clip(lean + _com_shift(pitch_rate, joint_velocities) / OMEGA, -CAPTURE_LIMIT, CAPTURE_LIMIT)
    bend = np.clip(LEG_GAINS[0] * roll + LEG_GAINS[1] * roll_rate, -LEG_LIMIT, LEG_LIMIT)[..., None] * [1, -1]

    targets = np.broadcast_to(REST_TARGETS, joint_positions.shape).copy()
    targets[..., HIP_ROLLS] += HIP_ROLL_GAIN * np.clip(sideways, -SPEED_LIMIT, SPEED_LIMIT)[..., None]
    targets[..., HIP_PITCHES] += HIP_PITCH_GAIN * capture[..., None] - bend
    targets[..., KNEES] += 2 * bend

    pressure = np.clip(SET_POINT + COP_GAIN * capture, *COP_RANGE)
    foot_pitch = pitch[..., None] + sum(joint_positions[..., joints] for joints in (HIP_PITCHES, KNEES, ANKLES))
    foot_rate = pitch_rate[..., None] + sum(joint_velocities[..., joints] for joints in (HIP_PITCHES, KNEES, ANKLES))
    torque = WEIGHT / 2 * pressure[..., None] - FOOT_STIFFNESS * foot_pitch - FOOT_DAMPING * foot_rate
    drive_torque = torque + ANKLE_DAMPING * joint_velocities[..., ANKLES]
    targets[..., ANKLES] = joint_positions[..., ANKLES] + drive_torque / ANKLE_STIFFNESS

    for joints in (HIP_ROLLS, HIP_PITCHES, ANKLES):
        pair = joint_positions[..., joints]
        targets[..., joints] -= SPLIT_GAIN * (pair - pair.mean(axis=-1, keepdims=True))
    return targets


def _com_shift(pitch: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """Returns how far the centre of mass moves ahead of the ankles [m], or how fast [m/s] if given rates."""
    hips, knees = joints[..., HIP_PITCHES].mean(axis=-1), joints[..., KNEES].mean(axis=-1)
    return COM_GRADIENT[0] * pitch + COM_GRADIENT[1] * hips + COM_GRADIENT[2] * knees


def _tilt_and_heading(orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns pitch (nose down positive) and roll (left side up positive) `(...)` [rad], and the heading `(..., 2)`.

    The heading is a unit vector in the world's xy plane.
    """
    w, x, y, z = np.moveaxis(np.asarray(orientation, float), -1, 0)
    nose = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z)], axis=-1)
    pitch = -np.arcsin(np.clip(2 * (x * z - w * y), -1, 1))
    roll = np.arctan2(2 * (y * z + w * x), 1 - 2 * (x * x + y * y))
    return pitch, roll, nose / np.maximum(np.linalg.norm(nose, axis=-1, keepdims=True), 1e-6)
