"""Built-in command terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from internutopia.config.base import Range
from internutopia.engines.views import EnvIds
from internutopia.rl.state import Array, RobotState
from internutopia.rl.terms.registry import term

SAMPLES = 16  # of a goal among objects


@term('command')
def uniform(state: RobotState, env_ids: EnvIds, low: Sequence[float], high: Sequence[float]) -> NDArray[np.float64]:
    """Numbers `(k,)`, each sampled uniformly between its `low` and `high`."""
    return state.rng.uniform(low, high, (len(env_ids), len(low)))


@term('command')
def choice(state: RobotState, env_ids: EnvIds, rows: Sequence[Sequence[float]]) -> Array:
    """One of these rows of numbers `(k,)`, each as likely."""
    picks = (state.rng.uniform(0.0, len(rows), len(env_ids))).clip(max=len(rows) - 0.5)
    return state.constant(tuple(map(tuple, rows)), state.arrays.double)[state.xp.astype(picks, state.xp.int64)]


@term('command', marker='point')
def position(state: RobotState, env_ids: EnvIds, low: Sequence[float], high: Sequence[float]) -> NDArray[np.float64]:
    """Point (x, y, z) in the env frame [m], sampled uniformly between `low` and `high`."""
    return uniform(state, env_ids, low, high)


@term('command', mirror=(1.0, -1.0, -1.0), marker='velocity')
def velocity(
    state: RobotState,
    env_ids: EnvIds,
    forward: Range = (-0.5, 1.0),
    lateral: Range = (-0.3, 0.3),
    yaw_rate: Range = (-1.0, 1.0),
    standing: float = 0.1,
    turning: float = 0.0,
    by_level: bool = False,
) -> NDArray[np.float64]:
    """Velocity command `(3,)`, sampled uniformly: forward and left speed [m/s], yaw rate [rad/s], base frame.

    A fraction `standing` of the envs gets zeros, a fraction `turning` only a yaw rate. With `by_level`, envs of level
    0 only walk straight ahead, at 0.4 to 1.0 of the highest speed, and envs of level 1 get the full range.
    """
    low, high = state.constant(tuple(zip(forward, lateral, yaw_rate, strict=True)), state.arrays.double)
    level = state.levels[env_ids][:, None] if by_level else None
    if level is not None:
        ahead = state.constant((forward[1], 0.0, 0.0), state.arrays.double)
        low, high = level * low + (1.0 - level) * 0.4 * ahead, level * high + (1.0 - level) * ahead
    commands = state.rng.uniform(low, high, (len(env_ids), 3))
    share = state.rng.uniform(size=(len(env_ids), 1))
    if level is not None:
        share = share / level.clip(min=1e-9)
    zero_below = state.constant((standing + turning, standing + turning, standing), state.arrays.double)
    return state.xp.where(share < zero_below, 0.0, commands)


@term('command', marker='point')
def goal(
    state: RobotState,
    env_ids: EnvIds,
    distance: Range,
    around: str = 'origin',
    avoid: Sequence[str] = (),
    clearance: float = 0.5,
) -> NDArray[np.float64]:
    """Point (x, y) in the env frame [m], at a random bearing and `distance` [m] from the env origin or the `'robot'`.

    It is the first of a few samples that is at least `clearance` [m] from the objects `avoid`, or else the farthest
    one.
    """
    if around not in ('origin', 'robot'):
        raise ValueError(f"command term 'goal': around must be 'origin' or 'robot', got {around!r}")
    shape = (len(env_ids), SAMPLES if avoid else 1)
    radius, bearing = state.rng.uniform(*distance, shape), state.rng.uniform(-np.pi, np.pi, shape)
    xp = state.xp
    points = xp.stack([radius * xp.cos(bearing), radius * xp.sin(bearing)], axis=-1)
    if around == 'robot':
        points = points + state.base_position[env_ids][:, None, :2]
    if not avoid:
        return points[:, 0]
    gaps = state.object_positions(avoid)[env_ids][:, None, :, :2] - points[:, :, None]
    nearest = xp.min(xp.linalg.vector_norm(gaps, axis=-1), axis=-1).clip(max=clearance)
    return points[state.arrays.arange(len(env_ids)), nearest.argmax(axis=1)]
