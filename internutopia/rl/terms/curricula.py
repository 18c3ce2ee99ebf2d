"""Built-in curriculum terms; other terms read `state.levels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.rl.state import RobotState
from internutopia.rl.terms.registry import term


@term('curriculum')
def survival(state: RobotState, env_ids: Any, long: float, short: float, step: float = 0.05) -> None:
    """An env goes up by `step` after an episode of at least `long` [s], and down after one of less than `short` [s]."""
    duration = state.steps[env_ids] * state.step_dt
    change = step * ((duration >= long).astype(np.float32) - (duration < short))
    state.levels[env_ids] = np.clip(state.levels[env_ids] + change, 0.0, 1.0)
