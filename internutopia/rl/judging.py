"""Judging: what a step of all envs comes to, computed of arrays over envs and of nothing else.

So the same code serves numpy, torch and, with traced arrays, machine code (`rl/compiled`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.core.world.env_selection import EnvSelection
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
        failed: whether it is cut in this step because something went wrong.
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
    """What a step comes to, `(n,)` each; None for a mask that is known to have nobody in it.

    Attributes:
        rewards: zero in envs that do not run, or failed.
        terminated: which episodes end by an outcome.
        truncated: which are cut.
        ended: which are over, for either reason.
        expired: for each kind of thing, and each thing, where it happens now.
    """

    rewards: NDArray[np.float32]
    terminated: Bools
    truncated: Bools
    ended: Bools | None
    expired: Sequence[Sequence[Bools | None]]


@dataclass
class StepOutcome:
    """One step of all envs, arrays `(n,)`; rows of envs that did not run are zero.

    Attributes:
        failed: which envs were cut because something went wrong.
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
    healthy = episodes.running & ~episodes.failed
    terminated, truncated = terminations.compute()
    values = xp.where(healthy, rewards.compute(), 0.0)
    terminated = (terminated | episodes.done) & healthy
    truncated = (truncated | (state.steps >= episodes.limits)) & healthy | episodes.failed
    episodes.returns += values
    ended = terminated | truncated
    going = episodes.running & ~ended
    return Judgement(values, terminated, truncated, ended, [timers.advance(going) for timers in episodes.timers])
