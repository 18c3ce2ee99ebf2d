"""Loop of a run: every episode from its reset to its end."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from internutopia.cli.overview import Overview
from internutopia.cli.run_file import EpisodeActions, TaskActions
from internutopia.config import TaskCfg
from internutopia.core.vec_env import Env


@dataclass(frozen=True)
class Result:
    """Result of one ended episode."""

    task: str | None
    scene: str | None
    steps: int
    terminated: bool
    truncated: bool
    error: str | None
    metrics: dict[str, Any]


@dataclass
class RunStats:
    """Statistics of a run so far."""

    step_seconds: float
    """Simulated time per step of an env [s]."""
    done: int = 0
    """Episodes that an earlier part of the run has done."""
    steps: int = 0
    """Calls of `env.step`."""
    env_steps: int = 0
    """Steps that running envs made, added up over envs."""
    results: list[Result] = field(default_factory=list)
    unfinished: int = 0
    """Episodes that were under way when the run was stopped."""
    started: float = field(default_factory=time.perf_counter)

    @property
    def wall_seconds(self) -> float:
        """Time since the start [s]."""
        return time.perf_counter() - self.started

    @property
    def simulated_seconds(self) -> float:
        """Simulated time, added up over envs [s]."""
        return self.env_steps * self.step_seconds


def run_episodes(
    env: Env,
    actions: Sequence[TaskActions],
    *,
    max_steps: int | None,
    stopped: Callable[[], bool],
    overview: Overview | None,
    on_step: Callable[[RunStats], None],
) -> RunStats:
    """Run until no episode is left, `max_steps` steps are made or `stopped()` is True.

    Args:
        env: not reset yet.
        actions: actions of the robots, by index of the task config.
        max_steps: calls of `env.step` at most; None means no limit.
        stopped: called after every step.
        overview: recorder of the overview picture, if any.
        on_step: called after every step.
    """
    simulator = env.config.simulator
    stats = RunStats(float(simulator.physics_dt) * simulator.substeps, len(env.task_config_manager.done))
    entropy = env.config.seed if env.config.seed is not None else int(np.random.SeedSequence().generate_state(1)[0])
    running: dict[int, tuple[TaskCfg, EpisodeActions]] = {}

    def reset(env_ids: Sequence[int]) -> None:
        first_obs, task_configs = env.reset(env_ids)
        if overview is not None:
            overview.on_reset(env_ids, first_obs, task_configs)
        for env_id, task_config in zip(env_ids, task_configs, strict=True):
            running.pop(env_id, None)
            if task_config is not None:
                episode = env.active_episodes[env_id]
                space = functools.partial(env.action_space, env_id)
                source = EpisodeActions(actions[episode.task_index], space, (entropy, episode.id))
                running[env_id] = (task_config, source)

    reset(range(env.num_envs))
    while not env.done:
        step_actions = [running[i][1].next() if i in running else None for i in range(env.num_envs)]
        obs, _, terminated, truncated, infos = env.step(step_actions)
        stats.steps += 1
        stats.env_steps += len(running)
        if overview is not None:
            overview.on_step(obs)
        ended = [env_id for env_id in running if terminated[env_id] or truncated[env_id]]
        for env_id in ended:
            info = infos[env_id] or {}
            if info.get('requeued'):  # its worker died; it will be run again
                continue
            stats.results.append(
                Result(
                    task=running[env_id][0].type,
                    scene=running[env_id][0].scene_asset_path,
                    steps=info['step'],
                    terminated=bool(terminated[env_id]),
                    truncated=bool(truncated[env_id]),
                    error=info.get('error'),
                    metrics=info['metrics'],
                )
            )
        on_step(stats)
        if ended and overview is not None:
            overview.on_end(ended, obs)
        if stopped() or stats.steps == max_steps:
            stats.unfinished = len(running) - len(ended)
            break
        if ended:
            reset(sorted(ended))
    return stats
