"""Built-in observation terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from internutopia.config.base import PositiveFloat
from internutopia.rl.state import Array, RobotState
from internutopia.rl.symmetry import Mirror, mirror_feet, mirror_joints
from internutopia.rl.terms.registry import CommandName
from internutopia.rl.terms.registry import pure_term as term
from internutopia.util.rotations import length, quat_rotate_inverse, squared_length, wrap_angle, yaw_of, yaw_rotate

VECTOR = (1.0, -1.0, 1.0)  # what becomes of a vector (x, y, z) of the base frame when left and right are swapped
PSEUDOVECTOR = (-1.0, 1.0, -1.0)  # of an axis of rotation


def _mirror_joints(state: RobotState, joints: Sequence[str] | None = None, **_: Any) -> Mirror:
    return mirror_joints(state, state.articulation.dof_names if joints is None else joints)


def mirror_phase(state: RobotState, period: PositiveFloat, alternating: bool = True, **_: Any) -> Mirror:
    """Return the mirror of a gait's clock."""
    return Mirror.of_signs((-1.0, -1.0) if alternating else (1.0, 1.0))  # half a period later is the opposite


@term('observation', mirror=_mirror_joints)
def joint_positions(state: RobotState, relative: bool = False, joints: Sequence[str] | None = None) -> Array:
    """Positions of `joints`, by default all `(n, k)` [rad or m]; with `relative`, offsets from the home pose."""
    values = state.joint_offsets if relative else state.joint_positions
    return values if joints is None else values[:, state.dof_indices(joints)]


@term('observation', mirror=_mirror_joints)
def joint_velocities(state: RobotState, joints: Sequence[str] | None = None) -> Array:
    """Velocities of `joints`, by default all `(n, k)` [rad/s or m/s]."""
    return state.joint_velocities if joints is None else state.joint_velocities[:, state.dof_indices(joints)]


@term('observation')
def base_position(state: RobotState) -> Array:
    """Position of the base in the env frame `(n, 3)` [m]."""
    return state.base_position


@term('observation', mirror=(1.0,))
def base_height(state: RobotState) -> Array:
    """Height of the base above the ground `(n,)` [m]."""
    return state.base_clearance


@term('observation')
def base_orientation(state: RobotState) -> Array:
    """Orientation of the base in the env frame, a quaternion (w, x, y, z) `(n, 4)`."""
    return state.base_orientation


@term('observation', mirror=VECTOR)
def base_linear_velocity(state: RobotState) -> Array:
    """Linear velocity of the base in the base frame `(n, 3)` [m/s]."""
    return state.base_linear_velocity_b


@term('observation', mirror=PSEUDOVECTOR)
def base_angular_velocity(state: RobotState) -> Array:
    """Angular velocity of the base in the base frame `(n, 3)` [rad/s]."""
    return state.base_angular_velocity_b


@term('observation', mirror=VECTOR)
def projected_gravity(state: RobotState) -> Array:
    """Direction of gravity in the base frame `(n, 3)`; (0, 0, -1) when upright."""
    return state.projected_gravity


@term('observation')
def last_action(state: RobotState) -> Array:
    """Action of the last step `(n, k)`."""
    return state.actions


@term('observation')
def command(state: RobotState, name: CommandName) -> Array:
    """Current value of the command `name` `(n, k)`."""
    return state.command(name)


@term('observation', mirror=(1.0, 1.0, -1.0))
def goal_direction(state: RobotState, name: CommandName) -> Array:
    """Distance to the goal of command `name` [m], cosine and sine of its bearing from the base's heading `(n, 3)`."""
    offset = state.command(name)[:, :2] - state.base_position[:, :2]
    xp = state.xp
    bearing = wrap_angle(xp.arctan2(offset[:, 1], offset[:, 0]) - yaw_of(state.base_orientation))
    return xp.stack([length(offset), xp.cos(bearing), xp.sin(bearing)], axis=-1)


@term('observation', mirror=mirror_phase)
def phase(state: RobotState, period: PositiveFloat, alternating: bool = True) -> Array:
    """Cosine and sine of a phase that starts with the episode and has a `period` [s] `(n, 2)`.

    With `alternating` left and right steps, its mirror image is the phase half a period later.
    """
    xp = state.xp
    angle = 2.0 * np.pi * xp.astype(state.steps, xp.float64) * state.step_dt / period
    return xp.stack([xp.cos(angle), xp.sin(angle)], axis=-1)


@term('observation')
def link_position(state: RobotState, link: str) -> Array:
    """Position of a link's origin in the base frame `(n, 3)` [m]."""
    return quat_rotate_inverse(state.base_orientation, state.link_position(link) - state.base_position)


@term('observation')
def constant(state: RobotState, value: Any = 1.0) -> Array:
    """A constant, the same in every env `(n, k)`."""
    values = state.constant(tuple(np.atleast_1d(value).tolist()))
    return state.xp.broadcast_to(values, (state.env_num, len(values)))


@term('observation', mirror=mirror_feet)
def feet_contacts(state: RobotState) -> Array:
    """1 for each of the robot's `feet` that touches something, else 0 `(n, k)`."""
    return state.xp.astype(state.feet_contacts, state.xp.float32)


def _mirror_scan(state: RobotState, forward: Sequence[float], left: Sequence[float], offset: float = 0.0) -> Mirror:
    places = [(x, y) for x in forward for y in left]
    if any((x, -y) not in places for x, y in places):
        raise ValueError("observation term 'height_scan': `left` differs left and right")
    order = np.array([places.index((x, -y)) for x, y in places], np.intp)
    return Mirror(order, np.ones(len(places), np.float32))


@term('observation', mirror=_mirror_scan)
def height_scan(state: RobotState, forward: Sequence[float], left: Sequence[float], offset: float = 0.0) -> Array:
    """Height of the base above the ground at each pair of distances `forward`, `left` in its heading `(n, k)` [m].

    `offset` is subtracted, such as the height of the base on level ground. Heights come from the map of the ground,
    see `LearningCfg.elevation`; without one, the ground is at height 0. A walking controller casts rays instead.
    """
    grid = state.constant(tuple((float(x), float(y)) for x in forward for y in left))
    places = state.base_position[:, None, :2] + yaw_rotate(yaw_of(state.base_orientation)[:, None], grid)
    return state.base_position[:, 2:] - state.ground_height(places) - offset


@term('observation')
def nearest_objects(state: RobotState, objects: Sequence[str], count: int) -> Array:
    """Positions of the `count` nearest objects, (forward, left) of the base in its heading `(n, 2 * count)` [m]."""
    xp = state.xp
    offsets = state.object_positions(objects)[..., :2] - state.base_position[:, None, :2]
    order = xp.argsort(squared_length(offsets), axis=-1)[:, :count]
    nearest = xp.take_along_axis(offsets, order[..., None], axis=1)
    return yaw_rotate(-yaw_of(state.base_orientation)[:, None], nearest).reshape(state.env_num, -1)
