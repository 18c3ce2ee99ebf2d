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
    """The base is lower than this above the ground [m]."""
    return state.base_clearance < minimum_height


@term('termination')
def tilted(state: RobotState, limit: float) -> Bools:
    """The base leans from upright by more than this [rad]."""
    return state.projected_gravity[:, 2] > -np.cos(limit)


@term('termination')
def height_outside(state: RobotState, low: float, high: float) -> Bools:
    """The base is outside a range of heights [m]."""
    z = state.base_position[:, 2]
    return (z < low) | (z > high)


@term('termination')
def joint_outside(state: RobotState, joint: str, low: float, high: float) -> Bools:
    """A joint is outside a range [rad or m]."""
    position = state.joint_positions[:, state.articulation.get_dof_index(joint)]
    return (position < low) | (position > high)


@term('termination')
def goal_reached(state: RobotState, name: CommandName, radius: float) -> Bools:
    """The base is within `radius` [m] of the goal that command `name` gives (x, y in the env frame)."""
    offset = state.command(name)[:, :2] - state.base_position[:, :2]
    return length(offset) < radius


@term('termination')
def left_area(state: RobotState, radius: float) -> Bools:
    """The base is farther than this from the origin of its env [m]."""
    return length(state.base_position[:, :2]) > radius


@term('termination')
def near_object(state: RobotState, objects: Sequence[str], distance: float) -> Bools:
    """The base is nearer than `distance` [m] to the centre of an object, seen from above."""
    gaps = state.object_positions(objects)[..., :2] - state.base_position[:, None, :2]
    return (squared_length(gaps) < distance**2).any(axis=-1)
