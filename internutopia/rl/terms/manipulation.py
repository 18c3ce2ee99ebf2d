"""Terms of arms: an end effector, a target and an object. Distances in m."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.base import PositiveFloat, Range, Vector
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.registry import CommandName
from internutopia.rl.terms.registry import pure_term as term
from internutopia.util.rotations import length, quat_rotate, quat_rotate_inverse


@term('observation')
def target_offset(state: RobotState, link: str, name: CommandName) -> Array:
    """Vector from a link to the point (x, y, z) of command `name`; base frame `(n, 3)` [m]."""
    return _in_base(state, state.command(name)[:, :3] - state.link_position(link))


@term('observation')
def object_offset(state: RobotState, link: str, body: str, offset: Vector = (0.0, 0.0, 0.0)) -> Array:
    """Vector from a link to an object, or to the point `offset` [m] in the object's frame; base frame `(n, 3)` [m]."""
    return _in_base(state, _point(state, body, offset) - state.link_position(link))


@term('observation')
def object_joint(state: RobotState, body: str, joint: str) -> Array:
    """Position of a joint of an object `(n,)` [rad or m]."""
    return state.object_joint(body, joint)


@term('reward')
def target_distance(state: RobotState, link: str, name: CommandName) -> Array:
    """Distance from a link to the point (x, y, z) of command `name` [m]."""
    return length(state.command(name)[:, :3] - state.link_position(link))


@term('reward')
def target_near(state: RobotState, link: str, name: CommandName, tolerance: PositiveFloat) -> Array:
    """exp(-d / tolerance), d being the distance from a link to the point (x, y, z) of command `name` [m]."""
    return state.xp.exp(-target_distance(state, link, name) / tolerance)


@term('reward')
def object_near(
    state: RobotState, link: str, body: str, tolerance: PositiveFloat, offset: Vector = (0.0, 0.0, 0.0)
) -> Array:
    """exp(-d / tolerance), d being the distance from a link to an object, or to the point `offset` in its frame [m]."""
    return state.xp.exp(-length(_point(state, body, offset) - state.link_position(link)) / tolerance)


@term('reward')
def object_lifted(state: RobotState, body: str, low: float, high: float) -> Array:
    """Height of an object in the env frame, scaled from `low` and `high` [m] to 0 and 1, and clipped."""
    return _scaled(state.object_positions([body])[:, 0, 2], low, high)


@term('metric')
@term('reward')
def object_joint_moved(state: RobotState, body: str, joint: str, low: float, high: float) -> Array:
    """Position of a joint of an object, scaled from `low` and `high` [rad or m] to 0 and 1, and clipped."""
    return _scaled(state.object_joint(body, joint), low, high)


@term('reward')
def grip(
    state: RobotState, link: str, body: str, joints: Sequence[str], opening: PositiveFloat, radius: PositiveFloat
) -> Array:
    """1 - mean position of `joints` / `opening` [rad or m] while a link is within `radius` [m] of an object, else 0."""
    xp = state.xp
    closed = 1.0 - xp.mean(state.joint_positions[:, state.dof_indices(joints)], axis=-1) / opening
    return xp.where(length(_point(state, body, (0.0, 0.0, 0.0)) - state.link_position(link)) < radius, closed, 0.0)


@term('termination')
def object_reached(state: RobotState, link: str, body: str, radius: PositiveFloat) -> NDArray[np.bool_]:
    """A link is within `radius` [m] of an object."""
    return length(state.object_positions([body])[:, 0] - state.link_position(link)) < radius


@term('reward', name='object_reached')
def at_object(state: RobotState, link: str, body: str, radius: PositiveFloat) -> Array:
    """1 if a link is within `radius` [m] of an object, else 0."""
    return state.xp.astype(object_reached(state, link, body, radius), state.xp.float32)


@term('termination')
def object_away(state: RobotState, body: str, distance: float) -> NDArray[np.bool_]:
    """The horizontal distance from the base to an object is above `distance` [m]."""
    offset = state.object_positions([body])[:, 0, :2] - state.base_position[:, :2]
    return length(offset) > distance


@term('randomization')
def place_object(state: RobotState, env_ids: Any, body: str, x: Range, y: Range, z: float, fixed: bool = False) -> None:
    """Place an object at rest at `x`, `y` sampled from their ranges, and `z`, env frame [m]; `fixed` ones, too."""
    n, thing, xp = len(env_ids), state.scene_object(body), state.xp
    forward, left = state.rng.uniform(*x, n), state.rng.uniform(*y, n)
    thing.set_poses(env_ids, xp.stack([forward, left, xp.full_like(left, z)], axis=-1))
    if not fixed:
        rest = state.arrays.zeros((n, 3))
        thing.set_velocities(env_ids, rest, rest)


def _scaled(values: Array, low: float, high: float) -> Array:
    if high <= low:
        raise ValueError(f'low={low}, high={high}: the former must be smaller')
    return ((values - low) / (high - low)).clip(0.0, 1.0)


def _point(state: RobotState, body: str, offset: Vector) -> Array:
    """Return where a point of an object is, env frame `(n, 3)` [m]."""
    positions = state.object_positions([body])[:, 0]
    if not any(offset):
        return positions
    orientations = state.scene_object(body).get_poses()[1]
    return positions + quat_rotate(orientations, state.constant(tuple(offset)) + state.xp.zeros_like(positions))


def _in_base(state: RobotState, vector: Array) -> Array:
    return quat_rotate_inverse(state.base_orientation, vector)
