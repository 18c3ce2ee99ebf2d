"""Terms of motion tracking: a robot follows a reference motion from a file.

Rewards have the form of DeepMimic (Peng et al. 2018, arXiv:1804.02717) and BeyondMimic (Liao et al. 2025,
arXiv:2508.08241): exp(-e / tolerance^2) of the mean squared error e of joints, base ("anchor") and links. An episode
begins at a random time of the motion, in its pose and with its velocities (`motion_start`), and continues from there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.config.base import PositiveFloat
from internutopia.model.asset_paths import resolve
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.registry import term
from internutopia.util import did_you_mean
from internutopia.util.rotations import (
    length,
    quat_conjugate,
    quat_multiply,
    quat_rotate,
    quat_rotate_inverse,
    squared_length,
)

_START = 'motion: start'  # frame in which an episode began
_ARRAYS = ('joint_names', 'joint_positions', 'base_positions', 'base_orientations', 'link_names', 'link_positions')


class MotionFile(NamedTuple):
    """A reference motion of T frames, `rate` per second: a file of `numpy.savez` has arrays of these names.

    Attributes:
        rate: frames per second.
        joint_names: `(dof,)`.
        joint_positions: `(T, dof)` [rad or m].
        base_positions: of the base `(T, 3)` [m], env frame.
        base_orientations: `(T, 4)`, (w, x, y, z).
        link_names: links whose positions are known `(k,)`.
        link_positions: of their origins `(T, k, 3)` [m], base frame.
    """

    rate: float
    joint_names: tuple[str, ...]
    joint_positions: NDArray[np.float64]
    base_positions: NDArray[np.float64]
    base_orientations: NDArray[np.float64]
    link_names: tuple[str, ...]
    link_positions: NDArray[np.float64]


@lru_cache(maxsize=16)
def read_motion(file: str) -> MotionFile:
    """Read a motion file. FileNotFoundError; ValueError if an array is missing or has not as many frames as others."""
    with np.load(resolve(file, ('.npz',)), allow_pickle=False) as arrays:
        missing = [name for name in ('rate', *_ARRAYS) if name not in arrays]
        if missing:
            raise ValueError(f'motion file {file!r} has no {", ".join(missing)}')
        joints, links = (tuple(map(str, arrays[name])) for name in ('joint_names', 'link_names'))
        rate = float(arrays['rate'])
        q, p, r, x = (np.asarray(arrays[name], np.float64) for name in _ARRAYS if not name.endswith('names'))
    shapes = (len(q), len(joints)), (len(q), 3), (len(q), 4), (len(q), len(links), 3)
    if (q.shape, p.shape, r.shape, x.shape) != shapes or len(q) < 3:
        raise ValueError(
            f'motion file {file!r}: joint_positions, base_positions, base_orientations and link_positions must be '
            f'{shapes} of 3 frames at least, got {(q.shape, p.shape, r.shape, x.shape)}'
        )
    return MotionFile(rate, joints, q, p, r / np.linalg.norm(r, axis=-1, keepdims=True), links, x)


class _Motion:
    """Frames of a motion at the rate of the envs' steps, as arrays of the envs' kind, one row a frame."""

    def __init__(self, file: str, state: RobotState):
        motion, dofs = read_motion(file), state.articulation.dof_names
        unknown = next((name for name in motion.joint_names if name not in dofs), None)
        if unknown is not None:
            raise ValueError(f'motion file {file!r}: there is no joint {unknown!r}; {did_you_mean(unknown, dofs)}')
        self.duration = (len(motion.joint_positions) - 1) / motion.rate
        self.count = int(self.duration / state.step_dt) + 1
        if self.count < 3:
            raise ValueError(f'motion file {file!r} of {self.duration:.2f} s is shorter than three steps')
        self.joints = state.dof_indices(motion.joint_names)
        self.joint_list = [state.articulation.get_dof_index(name) for name in motion.joint_names]
        self.link_names = motion.link_names
        q, p, x = (
            _resampled(values, motion.rate, state.step_dt, self.count)
            for values in (motion.joint_positions, motion.base_positions, motion.link_positions)
        )
        r = _resampled(_continuous(motion.base_orientations), motion.rate, state.step_dt, self.count)
        r = r / np.linalg.norm(r, axis=-1, keepdims=True)
        velocity = (np.gradient(values, state.step_dt, axis=0) for values in (q, p, r))
        joint_velocities, linear, quat_rates = velocity
        angular = 2.0 * quat_multiply(quat_rates, quat_conjugate(r))[..., 1:]  # dq/dt = (0, w) q / 2
        make = state.arrays.asarray
        self.joint_positions, self.joint_velocities, self.base_positions, self.base_orientations = (
            make(values, 'float32') for values in (q, joint_velocities, p, r)
        )
        self.linear, self.angular, self.links = (make(values, 'float32') for values in (linear, angular, x))


@term('randomization')
def motion_start(state: RobotState, env_ids: Any, file: str, latest: float = 0.7, joint_offset: float = 0.0) -> None:
    """Begin at a random frame of the motion, in the first share `latest` of it, with its pose and velocities.

    Joints are off by up to `joint_offset` [rad or m].
    """
    motion, xp, n = _motion(state, file), state.xp, len(env_ids)
    frames = xp.astype(state.rng.uniform(0.0, latest * (motion.count - 1), n), xp.int64)
    start = state.episode_value(_START)  # on a device `env_ids` are all envs, of which these have made no step yet
    start[env_ids] = xp.where(state.steps[env_ids] == 0, xp.astype(frames, xp.float32), start[env_ids])
    robot, noise = state.articulation, state.rng.uniform(-joint_offset, joint_offset, (n, len(motion.joints)))
    robot.set_pose(motion.base_positions[frames], motion.base_orientations[frames], env_ids=env_ids)
    robot.set_joint_positions(motion.joint_positions[frames] + noise, motion.joint_list, env_ids)
    robot.set_linear_velocity(motion.linear[frames], env_ids=env_ids)
    robot.set_angular_velocity(motion.angular[frames], env_ids=env_ids)
    robot.set_joint_velocities(motion.joint_velocities[frames], motion.joint_list, env_ids)


@term('observation')
def motion_reference(state: RobotState, file: str) -> Array:
    """Next frame of the motion: joint positions relative to home and velocities / 20 s, `(n, 2 * dof)` [rad or m]."""
    motion, frame = _motion(state, file), _frame(state, file, ahead=1)
    offsets = motion.joint_positions[frame] - state.home[motion.joints]
    return state.xp.concat([offsets, motion.joint_velocities[frame] * 0.05], axis=-1)


@term('observation')
def motion_anchor(state: RobotState, file: str) -> Array:
    """Base of the motion's next frame in the base frame: offset [m], and its forward and left axes `(n, 9)`."""
    motion, frame, xp = _motion(state, file), _frame(state, file, ahead=1), state.xp
    offset = quat_rotate_inverse(state.base_orientation, motion.base_positions[frame] - state.base_position)
    turn = quat_multiply(quat_conjugate(state.base_orientation), motion.base_orientations[frame])
    axes = [
        quat_rotate(turn, state.constant(axis) + xp.zeros_like(offset)) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    ]
    return xp.concat([offset, *axes], axis=-1)


@term('reward')
def motion_joints(state: RobotState, file: str, tolerance: PositiveFloat = 0.3) -> Array:
    """exp(-e / tolerance^2), e the mean squared error of joint positions [rad² or m²]."""
    motion, frame = _motion(state, file), _frame(state, file)
    return _near(state, state.joint_positions[:, motion.joints] - motion.joint_positions[frame], tolerance)


@term('reward')
def motion_joint_velocities(state: RobotState, file: str, tolerance: PositiveFloat = 2.0) -> Array:
    """exp(-e / tolerance^2), e the mean squared error of joint velocities [rad²/s² or m²/s²]."""
    motion, frame = _motion(state, file), _frame(state, file)
    return _near(state, state.joint_velocities[:, motion.joints] - motion.joint_velocities[frame], tolerance)


@term('reward')
def motion_base_position(state: RobotState, file: str, tolerance: PositiveFloat = 0.3) -> Array:
    """exp(-d^2 / tolerance^2), d the distance of the base from that of the motion [m]."""
    return state.xp.exp(-squared_length(_base_error(state, file)) / tolerance**2)


@term('reward')
def motion_base_orientation(state: RobotState, file: str, tolerance: PositiveFloat = 0.4) -> Array:
    """exp(-a^2 / tolerance^2), a the angle between the base and that of the motion [rad]."""
    return state.xp.exp(-state.xp.square(_angle(state, file)) / tolerance**2)


@term('reward')
def motion_base_velocity(
    state: RobotState, file: str, linear: PositiveFloat = 1.0, angular: PositiveFloat = 3.0
) -> Array:
    """Mean of exp(-e / tolerance^2) for the `linear` [m/s] and the `angular` [rad/s] velocity of the base."""
    motion, frame, xp = _motion(state, file), _frame(state, file), state.xp
    moving = squared_length(state.base_linear_velocity - motion.linear[frame]) / linear**2
    turning = squared_length(state.base_angular_velocity - motion.angular[frame]) / angular**2
    return 0.5 * (xp.exp(-moving) + xp.exp(-turning))


@term('reward')
def motion_links(state: RobotState, file: str, tolerance: PositiveFloat = 0.2) -> Array:
    """exp(-e / tolerance^2), e the mean squared distance of links from those of the motion, in the base frame [m²]."""
    return state.xp.exp(-state.xp.mean(squared_length(_link_errors(state, file)), axis=-1) / tolerance**2)


@term('metric')
def motion_link_error(state: RobotState, file: str) -> Array:
    """Mean distance of links from those of the motion in the episode, in the base frame `(n,)` [m]."""

    def mean() -> Array:
        total = state.episode_value('motion: link error')
        total += state.xp.mean(length(_link_errors(state, file)), axis=-1)
        return total / state.xp.astype(state.steps, state.xp.float32).clip(min=1.0)

    return state.once(('motion link error', file), mean)


@term('metric')
def motion_base_error(state: RobotState, file: str) -> Array:
    """Distance of the base from that of the motion `(n,)` [m]."""
    return length(_base_error(state, file))


@term('termination')
def motion_lost(state: RobotState, file: str, distance: PositiveFloat = 0.5, tilt: PositiveFloat = 0.8) -> Any:
    """The base is farther than `distance` [m] from that of the motion, or turned by more than `tilt` [rad]."""
    return (length(_base_error(state, file)) > distance) | (_angle(state, file) > tilt)


@term('termination')
def motion_ended(state: RobotState, file: str) -> Any:
    """The motion is over."""
    return state.episode_value(_START) + state.steps >= _motion(state, file).count - 1


def _motion(state: RobotState, file: str) -> _Motion:
    return state.lasting(('motion', file), lambda: _Motion(file, state))


def _frame(state: RobotState, file: str, ahead: int = 0) -> Any:
    """Return the frames of the motion that the envs have come to `(n,)`; the last one after its end."""
    xp, count = state.xp, _motion(state, file).count

    def find() -> Any:
        return (xp.astype(state.episode_value(_START), xp.int64) + state.steps + ahead).clip(0, count - 1)

    return state.once(('motion frame', file, ahead), find)


def _base_error(state: RobotState, file: str) -> Array:
    return state.base_position - _motion(state, file).base_positions[_frame(state, file)]


def _angle(state: RobotState, file: str) -> Array:
    """Return the angles between the base and that of the motion `(n,)` [rad]."""

    def find() -> Array:
        orientations = _motion(state, file).base_orientations[_frame(state, file)]
        cosine = state.xp.abs((state.base_orientation * orientations).sum(axis=-1))
        return 2.0 * state.xp.arccos(cosine.clip(max=1.0))

    return state.once(('motion angle', file), find)


def _link_errors(state: RobotState, file: str) -> Array:
    """Return the offsets of links from those of the motion, base frame `(n, k, 3)` [m]."""

    def find() -> Array:
        motion = _motion(state, file)
        offsets = state.link_poses(motion.link_names)[0] - state.base_position[:, None]
        return quat_rotate_inverse(state.base_orientation[:, None], offsets) - motion.links[_frame(state, file)]

    return state.once(('motion links', file), find)


def _near(state: RobotState, errors: Array, tolerance: float) -> Array:
    return state.xp.exp(-state.xp.mean(state.xp.square(errors), axis=-1) / tolerance**2)


def _continuous(quats: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quaternions of which none has the opposite sign of the one before it."""
    flips = np.sign((quats[1:] * quats[:-1]).sum(-1))
    return quats * np.concatenate([[1.0], np.cumprod(np.where(flips == 0.0, 1.0, flips))])[:, None]


def _resampled(values: NDArray[np.float64], rate: float, dt: float, count: int) -> NDArray[np.float64]:
    """Interpolate frames `(T, ...)`, `rate` per second, at `count` times `dt` apart."""
    places = np.minimum(np.arange(count) * dt * rate, len(values) - 1)
    below = np.minimum(places.astype(int), len(values) - 2)
    share = (places - below).reshape(-1, *[1] * (values.ndim - 1))
    return values[below] * (1.0 - share) + values[below + 1] * share
