"""Built-in reward terms. Each is a rate: it is multiplied by its weight and the length of a step [s]."""

from __future__ import annotations

from collections.abc import Sequence

from internutopia.config.base import PositiveFloat
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.observations import joint_positions
from internutopia.rl.terms.registry import CommandName
from internutopia.rl.terms.registry import pure_term as term
from internutopia.util.rotations import length, squared_length


@term('reward')
def alive(state: RobotState) -> Array:
    """1 in every step."""
    return state.xp.ones_like(state.levels)


@term('reward')
def track_linear_velocity(
    state: RobotState, name: CommandName, tolerance: PositiveFloat = 0.5, final: PositiveFloat | None = None
) -> Array:
    """exp(-|v - v*|^2 / tolerance^2), v being the planar base velocity, v* elements 0, 1 of command `name` [m/s].

    Both are in the base frame. With `final`, the tolerance goes from `tolerance` to `final` as the env's level goes
    from 0 to 1.
    """
    error = state.once(
        ('linear velocity error', name),
        lambda: squared_length(state.command(name)[:, :2] - state.base_linear_velocity_b[:, :2]),
        commanded=True,
    )
    return state.xp.exp(-error / _by_level(state, tolerance, final) ** 2)


@term('reward')
def track_yaw_rate(
    state: RobotState, name: CommandName, tolerance: PositiveFloat = 0.5, final: PositiveFloat | None = None
) -> Array:
    """exp(-(w - w*)^2 / tolerance^2), w being the yaw rate of the base, w* element 2 of command `name` [rad/s].

    Both are in the base frame. With `final`, the tolerance goes from `tolerance` to `final` as the env's level goes
    from 0 to 1.
    """
    error = state.command(name)[:, 2] - state.base_angular_velocity_b[:, 2]
    return state.xp.exp(-state.xp.square(error) / _by_level(state, tolerance, final) ** 2)


@term('reward')
def goal_progress(state: RobotState, name: CommandName) -> Array:
    """Speed of the base towards the goal of command `name` [m/s]."""
    offset = state.command(name)[:, :2] - state.base_position[:, :2]
    distance = length(offset).clip(min=1e-6)
    return (offset * state.base_linear_velocity[:, :2]).sum(axis=-1) / distance


@term('reward')
def goal_reached(state: RobotState, name: CommandName, radius: float) -> Array:
    """1 if the base is within `radius` [m] of the goal of command `name`, else 0."""
    offset = state.command(name)[:, :2] - state.base_position[:, :2]
    return state.xp.astype(length(offset) < radius, state.xp.float32)


@term('reward')
def left_area(state: RobotState, radius: float) -> Array:
    """1 if the base is farther than `radius` [m] from the env origin, else 0."""
    return state.xp.astype(length(state.base_position[:, :2]) > radius, state.xp.float32)


@term('reward')
def height(state: RobotState, target: float, tolerance: PositiveFloat = 0.1) -> Array:
    """exp(-(z - target)^2 / tolerance^2), z being the height of the base in the env frame [m]."""
    return state.xp.exp(-state.xp.square(state.base_position[:, 2] - target) / tolerance**2)


@term('reward')
def upright(state: RobotState, tolerance: PositiveFloat = 0.3) -> Array:
    """exp(-|g_xy|^2 / tolerance^2), g being the direction of gravity in the base frame."""
    return state.xp.exp(-squared_length(state.projected_gravity[:, :2]) / tolerance**2)


@term('metric')
@term('reward')
def uprightness(state: RobotState) -> Array:
    """(1 + cos(tilt)) / 2: 1 when the base is upright, 0.5 when it lies on its side, 0 upside down."""
    return (1.0 - state.projected_gravity[:, 2]) / 2.0


@term('reward')
def risen(state: RobotState, height: PositiveFloat) -> Array:
    """Height of the base above the ground / `height` [m], clipped to 0 to 1, times the square of `uprightness`."""
    return (state.base_clearance / height).clip(0.0, 1.0) * state.xp.square(uprightness(state))


@term('reward')
def upright_posture(state: RobotState, tolerance: PositiveFloat, joints: Sequence[str] | None = None) -> Array:
    """exp(-e / tolerance^2) times the 4th power of `uprightness`, e the mean squared offset of `joints` from home."""
    offsets = joint_positions(state, relative=True, joints=joints)
    error = state.xp.mean(state.xp.square(offsets), axis=-1)
    return state.xp.exp(-error / tolerance**2) * uprightness(state) ** 4


@term('reward')
def forward_velocity(state: RobotState) -> Array:
    """Velocity of the base along the x axis of the env [m/s]."""
    return state.base_linear_velocity[:, 0]


@term('reward')
def action_cost(state: RobotState) -> Array:
    """Sum of squared actions."""
    return state.xp.square(state.actions).sum(axis=-1)


@term('reward')
def action_rate_cost(state: RobotState) -> Array:
    """Sum of squared differences of the actions from those of the last step."""
    return state.xp.square(state.actions - state.last_actions).sum(axis=-1)


@term('reward')
def effort_cost(state: RobotState) -> Array:
    """Sum of squared joint efforts [N²·m² or N²]."""
    return state.xp.square(state.joint_efforts).sum(axis=-1)


@term('reward')
def power_cost(state: RobotState) -> Array:
    """Mechanical power of the joints, sum of |effort * velocity| [W]; braking counts as positive."""
    return state.xp.abs(state.joint_efforts * state.joint_velocities).sum(axis=-1)


@term('reward')
def joint_velocity_cost(state: RobotState) -> Array:
    """Sum of squared joint velocities [rad²/s² or m²/s²]."""
    return state.xp.square(state.joint_velocities).sum(axis=-1)


@term('reward')
def posture_cost(state: RobotState, joints: Sequence[str] | None = None) -> Array:
    """Sum of squared offsets of `joints`, by default all, from the home pose [rad² or m²]."""
    return state.xp.square(joint_positions(state, relative=True, joints=joints)).sum(axis=-1)


@term('reward')
def joint_limit_cost(state: RobotState, margin: float = 0.0) -> Array:
    """Sum of the amounts by which joints exceed their limits minus `margin` [rad or m]."""
    low, high = state.joint_ranges.T
    xp = state.xp
    positions = xp.astype(state.joint_positions, low.dtype, copy=False)
    # beyond one limit at most
    return xp.maximum(low + margin - positions, positions - high + margin).clip(min=0.0).sum(axis=-1)


@term('reward')
def vertical_velocity_cost(state: RobotState) -> Array:
    """Squared vertical velocity of the base [m²/s²]."""
    return state.xp.square(state.base_linear_velocity[:, 2])


@term('reward')
def tilt_rate_cost(state: RobotState) -> Array:
    """Squared norm of the roll and pitch rates of the base [rad²/s²]."""
    return squared_length(state.base_angular_velocity_b[:, :2])


@term('reward')
def tilt_cost(state: RobotState) -> Array:
    """Squared norm of the horizontal part of the direction of gravity in the base frame."""
    return squared_length(state.projected_gravity[:, :2])


@term('reward')
def height_cost(state: RobotState, target: float) -> Array:
    """Squared difference of the base's height above the ground from `target` [m²]."""
    return state.xp.square(state.base_clearance - target)


@term('reward')
def near_objects_cost(state: RobotState, objects: Sequence[str], distance: PositiveFloat) -> Array:
    """Sum of 1 - d / distance over the objects whose horizontal distance d from the base is below `distance` [m]."""
    offsets = state.object_positions(objects)[..., :2] - state.base_position[:, None, :2]
    gaps = length(offsets)
    return (1.0 - gaps / distance).clip(min=0.0).sum(axis=-1)


def _by_level(state: RobotState, first: float, final: PositiveFloat | None) -> Array | float:
    return first if final is None else first + (final - first) * state.levels
