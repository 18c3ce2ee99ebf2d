"""Terms that look at another robot of the env, by its name. Distances in m."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from internutopia.config.base import PositiveFloat
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.registry import term
from internutopia.util.rotations import length, quat_rotate_inverse


@term('observation')
def robot_offset(state: RobotState, robot: str) -> Array:
    """Vector from the base to the base of another robot; base frame `(n, 3)` [m]."""
    return quat_rotate_inverse(state.base_orientation, _way(state, robot))


@term('observation')
def robot_velocity(state: RobotState, robot: str) -> Array:
    """Linear velocity of the base of another robot, in this robot's base frame `(n, 3)` [m/s]."""
    return quat_rotate_inverse(state.base_orientation, state.other_robot(robot).get_root_velocities()[0])


@term('reward')
def robot_near(state: RobotState, robot: str, tolerance: PositiveFloat) -> Array:
    """exp(-d / tolerance), d being the distance from the base to the base of another robot [m]."""
    return state.xp.exp(-length(_way(state, robot)) / tolerance)


@term('termination')
def robot_within(state: RobotState, robot: str, radius: PositiveFloat) -> NDArray[np.bool_]:
    """The base of another robot is within `radius` [m] of the base."""
    return length(_way(state, robot)) < radius


@term('reward', name='robot_within')
def at_robot(state: RobotState, robot: str, radius: PositiveFloat) -> Array:
    """1 if the base of another robot is within `radius` [m] of the base, else 0."""
    return state.xp.astype(robot_within(state, robot, radius), state.xp.float32)


def _way(state: RobotState, robot: str) -> Array:
    return state.other_robot(robot).get_root_poses()[0] - state.base_position
