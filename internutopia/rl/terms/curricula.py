"""Built-in curriculum terms; other terms read `state.levels`."""

from __future__ import annotations

from typing import Any

from internutopia.config.fields import PositiveFloat
from internutopia.rl.state import RobotState
from internutopia.rl.terms.registry import term


@term('curriculum')
def survival(state: RobotState, env_ids: Any, long: float, short: float, step: float = 0.05) -> None:
    """An env goes up by `step` after an episode of at least `long` [s], and down after one of less than `short` [s]."""
    xp = state.xp
    duration = xp.astype(state.steps[env_ids], xp.float64) * state.step_dt
    change = step * (xp.astype(duration >= long, xp.float32) - xp.astype(duration < short, xp.float32))
    state.levels[env_ids] = (state.levels[env_ids] + change).clip(0.0, 1.0)


@term('curriculum')
def performance(
    state: RobotState, env_ids: Any, reward: str, duration: PositiveFloat, high: float, low: float, step: float = 0.05
) -> None:
    """An env goes up by `step` after an episode in which a reward term was at least `high`, and down below `low`.

    What counts is its mean over `duration` [s], without weight: who fell before that has got nothing for the rest.
    """
    xp, mean = state.xp, state.reward_sums[reward][env_ids] / duration
    change = step * (xp.astype(mean >= high, xp.float32) - xp.astype(mean < low, xp.float32))
    state.levels[env_ids] = (state.levels[env_ids] + change).clip(0.0, 1.0)
