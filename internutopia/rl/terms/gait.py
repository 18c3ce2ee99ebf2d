"""Reward terms of legged robots: feet that follow a clock.

Each foot has a phase between 0 and 1, `time / period + offset`: it stands while its phase is below `stance` and swings
for the rest. A robot that is commanded to stand (a command smaller than `STANDING`) keeps all feet on the ground.
Offsets are in the order of the robot's `feet`, e.g. (0, 0.5) for the walk of a biped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field, FiniteFloat

from internutopia.config.base import PositiveFloat, Vector
from internutopia.rl.state import Array, RobotState
from internutopia.rl.symmetry import Mirror
from internutopia.rl.terms.observations import mirror_phase, phase
from internutopia.rl.terms.registry import CommandName
from internutopia.rl.terms.registry import pure_term as term
from internutopia.util.rotations import length, quat_rotate, squared_length, yaw_of, yaw_rotate

Stance = Annotated[FiniteFloat, Field(ge=0, lt=1)]
STANDING = 0.1  # length of a command (m/s, m/s, rad/s) below which it means standing
MID_STRIDE = 0.4  # of a stride: a biped that starts to walk there takes half a step first, and does not tip to the side


def _mirror_gait_phase(
    state: RobotState, period: PositiveFloat, alternating: bool = True, stops: bool = True, **_: Any
) -> Mirror:
    clock = mirror_phase(state, period, alternating)
    return clock if stops else Mirror.joined([clock, Mirror.of_signs((1.0,))])


@term('observation', mirror=_mirror_gait_phase)
def gait_phase(
    state: RobotState, name: CommandName, period: PositiveFloat, alternating: bool = True, stops: bool = True
) -> Array:
    """Phase of a gait of `period` [s]: its cosine and sine, and (0, 0) while the command `name` is to stand `(n, 2)`.

    It lets a policy distinguish standing from walking slowly. With `stops=False`, the phase continues, and a third
    element is 1 while the command is to stand, else 0 `(n, 3)`: pushed bipeds can step by it.
    """
    stands, clock = _stands(state, name)[:, None], phase(state, period, alternating)
    if stops:
        return state.xp.where(stands, 0.0, clock)
    return state.xp.concat([clock, state.xp.astype(stands, clock.dtype)], axis=-1)


@term('reward')
def gait_contact(
    state: RobotState, name: CommandName, period: PositiveFloat, offsets: Sequence[float], stance: Stance = 0.55
) -> Array:
    """Sum over the feet of 1 if the foot's contact agrees with its gait phase, else -1.

    `name` is that of the velocity command, `period` [s], `offsets` in periods.
    """
    xp = state.xp
    stands = swing(state, name, period, offsets, stance) == 0.0
    return xp.where(state.feet_contacts == stands, 1.0, -1.0).sum(axis=-1, dtype=xp.float32)


@term('reward')
def swing_height_cost(
    state: RobotState,
    name: CommandName,
    period: PositiveFloat,
    offsets: Sequence[float],
    height: float,
    ground: float,
    stance: Stance = 0.55,
    ahead: Sequence[float] = (),
) -> Array:
    """Sum of squared vertical distances of the feet from a half sine of `height` [m] during their swing [m²].

    `ground` is the height of the feet links' origins above the ground when the robot stands [m]. With distances
    `ahead` of these origins in the base's heading [m], the highest ground at those counts for a foot in its swing, not
    that below it: a robot that observes a step lifts a foot before its toe is there.
    """
    xp, arc = state.xp, _arc(state, name, period, offsets, stance)
    clearances = state.feet_clearances
    if ahead:
        way = yaw_rotate(yaw_of(state.base_orientation)[:, None, None], state.constant(tuple((x, 0.0) for x in ahead)))
        heights = state.ground_height(state.feet_positions[:, :, None, :2] + way)
        steps = (xp.max(heights, axis=-1) - state.feet_ground).clip(min=0.0)
        clearances = clearances - xp.where(arc > 0.0, steps, 0.0)
    return squared_length(clearances - (ground + height * arc))


@term('reward')
def foothold_cost(
    state: RobotState, sole: Annotated[Sequence[Vector], Field(min_length=1)], margin: float = 0.03
) -> Array:
    """Sum over the feet that touch the ground of the fraction of the sole that overhangs an edge.

    `sole` are points on it in the frames of the feet [m]; a point overhangs if it is more than `margin` [m] above the
    ground (Wang et al., BeamDojo, RSS 2025).
    """
    xp = state.xp
    points = quat_rotate(state.feet_orientations[:, :, None], state.constant(tuple(map(tuple, sole))))
    points = points + state.feet_positions[:, :, None]
    hollow = points[..., 2] - state.ground_height(points) > margin
    shares = xp.astype(hollow, xp.float32).mean(axis=-1)
    return xp.where(state.feet_contacts, shares, 0.0).sum(axis=-1)


@term('reward')
def standing(state: RobotState, name: CommandName) -> Array:
    """1 while command `name` is to stand, else 0.

    It outweighs the costs of standing badly: without it, a robot that cannot stand yet falls at once to escape them.
    """
    return state.xp.astype(_stands(state, name), state.xp.float32)


@term('reward')
def standing_posture_cost(
    state: RobotState, name: CommandName, joints: Sequence[str], positions: Mapping[str, FiniteFloat] | None = None
) -> Array:
    """Sum of squared offsets of `joints` from the standing pose [rad²] while command `name` is to stand, else 0.

    The standing pose is home, except for joints in `positions` [rad].
    """
    xp, dofs = state.xp, state.dof_indices(joints)
    own = state.constant(tuple((positions or {}).get(joint, math.nan) for joint in joints))
    pose = xp.where(xp.isnan(own), state.home[dofs], own)
    return xp.where(_stands(state, name), squared_length(state.joint_positions[:, dofs] - pose), 0.0)


@term('reward')
def standing_motion_cost(state: RobotState, name: CommandName) -> Array:
    """Sum of squared joint velocities [rad²/s²] while command `name` is to stand, else 0."""
    xp = state.xp
    return xp.where(_stands(state, name), xp.square(state.joint_velocities).sum(axis=-1), 0.0)


@term('reward')
def standing_drift_cost(state: RobotState, name: CommandName) -> Array:
    """Horizontal speed [m/s] plus absolute yaw rate [rad/s] of the base while command `name` is to stand, else 0.

    Not squared, so that a drift of a few cm/s counts.
    """
    xp = state.xp
    drift = length(state.base_linear_velocity_b[:, :2]) + xp.abs(state.base_angular_velocity_b[:, 2])
    return xp.where(_stands(state, name), drift, 0.0)


@term('reward')
def path_error_cost(
    state: RobotState, name: CommandName, horizon: PositiveFloat = 1.0, limit: PositiveFloat = 0.2
) -> Array:
    """Distance [m] plus angle [rad] between the base and where following command `name` exactly would have taken it.

    Each counts up to `limit`, and decays over `horizon` [s]: a single push does not count for the rest of the episode.
    Velocities sway with each step; this is about where a step, a start or a stop ends.
    """

    def error() -> Array:
        xp, command = state.xp, state.command(name)
        drift = state.base_linear_velocity[:, :2] - yaw_rotate(yaw_of(state.base_orientation), command[:, :2])
        rates = drift[:, 0], drift[:, 1], state.base_angular_velocity[:, 2] - command[:, 2]
        x, y, turn = (state.episode_value(f'path error of {name!r} over {horizon} s: {i}') for i in range(3))
        for total, rate in zip((x, y, turn), rates, strict=True):
            total[:] = math.exp(-state.step_dt / horizon) * total + state.step_dt * rate
        return xp.sqrt(x * x + y * y).clip(max=limit) + xp.abs(turn).clip(max=limit)

    return state.once(('path error', name, horizon, limit), error)


@term('reward')
def low_links_cost(state: RobotState, links: Sequence[str], height: PositiveFloat) -> Array:
    """Sum of the amounts by which the origins of `links` are below a `height` above the ground [m]."""
    lacking = height - state.link_clearances(links)
    return lacking.clip(min=0.0).sum(axis=-1)


@term('reward')
def slip_cost(state: RobotState) -> Array:
    """Sum of squared horizontal speeds of the feet that touch the ground [m²/s²]."""
    xp = state.xp
    speeds = squared_length(state.feet_velocities[..., :2])
    return xp.where(state.feet_contacts, speeds, 0.0).sum(axis=-1, dtype=xp.float32)


@term('reward')
def feet_near_cost(state: RobotState, distance: PositiveFloat) -> Array:
    """Amount by which the lateral distance of a biped's feet, in its heading, falls below `distance` [m].

    Crossing legs may pass through each other in one model of a robot and collide in another.
    """
    xp = state.xp
    way = state.feet_positions[:, 0, :2] - state.feet_positions[:, 1, :2]
    apart = xp.abs(yaw_rotate(-yaw_of(state.base_orientation), way)[:, 1])
    return xp.astype((distance - apart).clip(min=0.0), xp.float32)


@term('reward')
def swing_bend_cost(
    state: RobotState,
    name: CommandName,
    period: PositiveFloat,
    offsets: Sequence[float],
    joints: Sequence[str],
    bend: float,
    stance: Stance = 0.55,
) -> Array:
    """Sum of squared angles by which knees are below a half sine of `bend` [rad] above home in the swing phase [rad²].

    `joints` are the knees, one per foot, that bend towards positive angles. It teaches robots to step that would
    otherwise stand still.
    """
    xp, knees = state.xp, state.dof_indices(joints)
    progress = swing(state, name, period, offsets, stance)
    lacking = bend * _arc(state, name, period, offsets, stance) - state.joint_offsets[:, knees]
    return xp.where(progress > 0.0, xp.square(lacking.clip(min=0.0)), 0.0).sum(axis=-1)


@term('reward')
def stance_bend_cost(
    state: RobotState,
    name: CommandName,
    period: PositiveFloat,
    offsets: Sequence[float],
    joints: Sequence[str],
    bend: float,
    stance: Stance = 0.55,
) -> Array:
    """Sum of squared angles by which knees exceed `bend` [rad] while their foot is in stance [rad²].

    `joints` are the knees, one per foot, that bend towards positive angles.
    """
    xp, knees = state.xp, state.dof_indices(joints)
    excess = (state.joint_positions[:, knees] - bend).clip(min=0.0)
    return xp.where(swing(state, name, period, offsets, stance) > 0.0, 0.0, xp.square(excess)).sum(axis=-1)


def swing(
    state: RobotState, name: CommandName, period: PositiveFloat, offsets: Sequence[float], stance: Stance
) -> Array:
    """Compute the progress of the swing of the feet `(n, k)`, 0 to 1; 0 for feet in stance."""
    xp = state.xp

    def by_clock() -> Array:
        feet = state.robot.feet
        if len(offsets) != len(feet):
            raise ValueError(f'offsets={list(offsets)}: one for each foot is needed, {", ".join(feet)}')
        periods = xp.astype(state.steps, xp.float64) * state.step_dt / period
        phases = periods[:, None] + state.constant(tuple(offsets), 'float64')
        phases = phases - xp.floor(phases)  # faster than a remainder
        return xp.astype((phases - stance).clip(min=0.0) / (1.0 - stance), xp.float32)

    def commanded() -> Array:
        return xp.where(_stands(state, name)[:, None], 0.0, state.once(('clock', *gait), by_clock))

    gait = period, tuple(offsets), stance
    return state.once(('swing', name, *gait), commanded, commanded=True)


def _stands(state: RobotState, name: CommandName) -> Array:
    """Return where a command is to stand, bool `(n,)`."""
    return state.once(('stands', name), lambda: length(state.command(name)) < STANDING, commanded=True)


def _arc(
    state: RobotState, name: CommandName, period: PositiveFloat, offsets: Sequence[float], stance: Stance
) -> Array:
    """Compute a half sine over the swing of the feet `(n, k)`, 0 to 1."""
    return state.once(
        ('arc', name, period, tuple(offsets), stance),
        lambda: state.xp.sin(np.pi * swing(state, name, period, offsets, stance)),
        commanded=True,
    )
