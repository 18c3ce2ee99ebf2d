"""Built-in termination terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from internutopia.rl.state import RobotState
from internutopia.rl.terms.registry import CommandName
from internutopia.rl.terms.registry import pure_term as term
from internutopia.util.rotations import length, squared_length

Bools = NDArray[np.bool_]


@term('termination')
def fallen(state: RobotState, minimum_height: float) -> Bools:
    """The base is lower than `minimum_height` above the ground [m]."""
    return state.base_clearance < minimum_height


@term('termination')
def tilted(state: RobotState, limit: float) -> Bools:
    """The tilt of the base from upright is above `limit` [rad]."""
    return state.projected_gravity[:, 2] > -np.cos(limit)


@term('termination')
def height_outside(state: RobotState, low: float, high: float) -> Bools:
    """The height of the base in the env frame is outside `low` to `high` [m]."""
    z = state.base_position[:, 2]
    return (z < low) | (z > high)


@term('termination')
def joint_outside(state: RobotState, joint: str, low: float, high: float) -> Bools:
    """A joint is outside `low` to `high` [rad or m]."""
    position = state.joint_positions[:, state.articulation.get_dof_index(joint)]
    return (position < low) | (position > high)


@term('termination')
def goal_reached(state: RobotState, name: CommandName, radius: float) -> Bools:
    """The base is within `radius` [m] of the goal of command `name`."""
    offset = state.command(name)[:, :2] - state.base_position[:, :2]
    return length(offset) < radius


@term('termination')
def left_area(state: RobotState, radius: float) -> Bools:
    """The base is farther than `radius` [m] from the env origin."""
    return length(state.base_position[:, :2]) > radius


@term('termination')
def near_object(state: RobotState, objects: Sequence[str], distance: float) -> Bools:
    """The horizontal distance from the base to the centre of an object is below `distance` [m]."""
    gaps = state.object_positions(objects)[..., :2] - state.base_position[:, None, :2]
    return (squared_length(gaps) < distance**2).any(axis=-1)
