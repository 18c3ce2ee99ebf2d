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
    """Way from the base to another robot's, in the base frame `(n, 3)` [m]."""
    return quat_rotate_inverse(state.base_orientation, _way(state, robot))


@term('observation')
def robot_velocity(state: RobotState, robot: str) -> Array:
    """Linear velocity of another robot's base, in this base's frame `(n, 3)` [m/s]."""
    return quat_rotate_inverse(state.base_orientation, state.other_robot(robot).get_root_velocities()[0])


@term('reward')
def robot_near(state: RobotState, robot: str, tolerance: PositiveFloat) -> Array:
    """exp(-d / tolerance) of the distance of another robot's base."""
    return state.xp.exp(-length(_way(state, robot)) / tolerance)


@term('termination')
def robot_within(state: RobotState, robot: str, radius: PositiveFloat) -> NDArray[np.bool_]:
    """Another robot's base is within this of the base [m]."""
    return length(_way(state, robot)) < radius


@term('reward', name='robot_within')
def at_robot(state: RobotState, robot: str, radius: PositiveFloat) -> Array:
    """1 where another robot's base is within `radius` [m] of the base."""
    return state.xp.astype(robot_within(state, robot, radius), state.xp.float32)


def _way(state: RobotState, robot: str) -> Array:
    return state.other_robot(robot).get_root_poses()[0] - state.base_position
