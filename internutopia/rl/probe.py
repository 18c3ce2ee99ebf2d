"""Probe of envs: properties known only once an episode has started, read from a single env."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl.action_format import ActionFormat
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.observation_groups import Observations
from internutopia.util.arrays import to_host


@dataclass(frozen=True)
class EnvProbe:
    """Properties of envs.

    Attributes:
        observation_space: of one env.
        critic_size: length of what the critic sees.
        action_size: length of what the controller takes.
        action_format: what a learner sends.
        metric_types: types of the metrics, by name.
        step_dt: length of an env step [s].
    """

    observation_space: spaces.Space[Any]
    critic_size: int
    action_size: int
    action_format: ActionFormat
    metric_types: Mapping[str, np.dtype[Any]]
    step_dt: float

    @classmethod
    def of(cls, config: Config, learning: LearningCfg | None) -> EnvProbe:
        """Return the properties of the envs of a config."""
        with probe_env(config, learning) as core:
            box = core.controller.action_space()
            assert isinstance(box, spaces.Box)
            none = core.arrays.zeros(1, 'bool')
            with np.errstate(all='ignore'):  # there was no step yet that could be rewarded
                core.rewards.compute()
            core.terminations.compute()
            return cls(
                _space(core.compute_observations()),
                spaces.flatdim(_space(core.compute_critic_observations())),
                core.state.actions.shape[1],
                ActionFormat.of(core.learning, box),
                {name: to_host(values).dtype for name, values in core.metrics.compute(none).items()},
                core.step_dt,
            )


@contextmanager
def probe_env(config: Config, learning: LearningCfg | None) -> Iterator[ArrayRunner]:
    """Return a context with one env of a config in this process, in which the first task has started."""
    changes = {'env_num': 1, 'task_configs': config.task_configs[:1], 'metrics_save_path': None, 'resume': False}
    core = ArrayRunner(config.model_copy(update=changes), learning)
    try:
        core.reset(core.select(np.ones(1, bool)))
        yield core
    finally:
        core.close()


def _space(observations: Observations) -> spaces.Space[Any]:
    """Return the space of one env for observations `(n, ...)`."""
    if isinstance(observations, dict):
        return spaces.Dict({name: _space(array) for name, array in observations.items()})
    array = to_host(observations)
    low, high = (0, 255) if array.dtype == np.uint8 else (-np.inf, np.inf)
    return spaces.Box(low, high, array.shape[1:], array.dtype.type)
