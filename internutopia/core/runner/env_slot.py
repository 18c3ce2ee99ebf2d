"""Env slot: the episode in an env, and what the list API calls of its classes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from internutopia.config import TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.robot.batched import BatchedRobot
from internutopia.core.runner.step_result import EMPTY_RESULT, StepResult
from internutopia.core.task.preparer import PreparedEpisode
from internutopia.core.task.task import BaseTask, TaskKind, kind_of, observed_batches


class EnvSlot:
    """An episode in an env, from its reset to the next one.

    Args:
        env_id: the env.
        prepared: the episode and its scene.
        task: the task that runs.
        steps: number of steps of the episode in each env, `(n,)`, of the runner.
        running: which envs run an episode, `(n,)`, of the runner.

    Attributes:
        prepared: the episode and its scene, with this task.
        task: the task that runs.
        last: result of its last step in the list API.
        labels: entries of every `info` of the list API.
        batches: batched robots, by name, that give the observation in the list API; None if code of one env does.
        kind: that of its task, whose envs the list API evaluates together; None if code of one env is called.
        limit: step at which the episode is truncated.
    """

    batches: list[tuple[str, BatchedRobot]] | None = None
    kind: TaskKind | None = None
    limit = math.inf

    def __init__(self, env_id: int, prepared: PreparedEpisode, task: BaseTask, steps: Any, running: Any):
        self.prepared = replace(prepared, task=task)
        self.task = task
        self.last: StepResult = EMPTY_RESULT
        self.labels = {'episode_id': prepared.episode.id, 'task_name': task.name}
        self._env_id, self._steps, self._running = env_id, steps, running

    def find_hooks(self) -> None:
        """Look up, at the start of the episode, what the list API calls of the classes of this env."""
        task = self.task
        limit, self.batches = task.config.max_episode_steps, observed_batches(task)
        self.limit = math.inf if limit is None else limit
        self.kind = kind_of(task, self.batches)

    @property
    def episode(self) -> Episode:
        """The episode: its number and its task config."""
        return self.prepared.episode

    @property
    def task_config(self) -> TaskCfg:
        """As configured, the copy that `reset` returned."""
        return self.prepared.task_config

    @property
    def step(self) -> int:
        """Number of steps made."""
        return int(self._steps[self._env_id])

    @property
    def ended(self) -> bool:
        """True if the episode has ended: the env stands still until it is reset."""
        return not self._running[self._env_id]
