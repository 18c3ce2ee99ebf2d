"""Judging: what a step of all envs comes to, computed of arrays over envs and of nothing else.

So the same code serves numpy, torch and, with traced arrays, machine code (`rl/compiled`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.managers import RewardManager, TerminationManager, Timers
from internutopia.rl.state import RobotState

Bools = NDArray[np.bool_]


@dataclass
class EpisodeArrays:
    """Of the episode in each env, `(n,)`.

    Attributes:
        running: whether it goes on.
        limits: steps after which it is truncated.
        returns: sum of its rewards.
        failed: whether it ends with this step because something went wrong.
        done: whether its task says that it ends with this step.
        timers: how long until things happen in it, for each kind of thing.
    """

    running: Bools
    limits: NDArray[np.intp]
    returns: NDArray[np.float64]
    failed: Bools
    done: Bools
    timers: Sequence[Timers]


class Judgement(NamedTuple):
    """Rewards and ends of a step, `(n,)` each; None for a mask that is known to be empty.

    Attributes:
        rewards: zero in envs that do not run, or failed.
        terminated: which episodes end by an outcome; of an env that failed, that is what comes of its actions.
        truncated: which are cut.
        failed: which envs failed.
        spoilt: which of them did because their reward is no finite number.
        expired: for each kind of thing, and each thing, where it happens now.
    """

    rewards: NDArray[np.float32]
    terminated: Bools
    truncated: Bools
    failed: Bools
    spoilt: Bools | None
    expired: Sequence[Sequence[Bools | None]]


@dataclass
class StepOutcome:
    """One step of all envs, arrays `(n,)`; rows of envs that did not run are zero.

    Attributes:
        failed: which envs ended because something went wrong there: there is no going on, and nothing to expect.
        stuck: which robots stand still although their controller is told to move; on a device it is not known.
        errors: what it was, by env id; on a device it is not known.
        ended: the envs whose episode is over.
        metrics: of the episodes so far, by name.
    """

    rewards: NDArray[np.float32]
    terminated: Bools
    truncated: Bools
    failed: Bools
    stuck: Bools
    errors: dict[int, str]
    ended: EnvSelection
    metrics: Mapping[str, NDArray[np.float32]]


def judge(
    state: RobotState, episodes: EpisodeArrays, terminations: TerminationManager, rewards: RewardManager
) -> Judgement:
    """Rewards and ends of a step; adds up returns, and lets the time of timers pass where episodes go on."""
    xp: Any = state.xp
    terminated, truncated = terminations.compute()
    values = xp.where(episodes.running & ~episodes.failed, rewards.compute(), 0.0)
    spoilt = ~xp.isfinite(values)
    values = xp.where(spoilt, 0.0, values)
    failed = episodes.failed | spoilt
    healthy = episodes.running & ~failed
    terminated = (terminated | episodes.done) & healthy | failed
    truncated = (truncated | (state.steps >= episodes.limits)) & healthy
    episodes.returns += values
    going = episodes.running & ~(terminated | truncated)
    expired = [timers.advance(going) for timers in episodes.timers]
    return Judgement(values, terminated, truncated, failed, spoilt, expired)
