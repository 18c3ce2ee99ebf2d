"""Env slots and groups: the episode in an env, and envs that the list API evaluates together, all at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.observations import EMPTY_RESULT, Observation, ObservedRows, StepResult
from internutopia.core.robot.batched import BatchedRobot
from internutopia.core.task.preparer import PreparedEpisode
from internutopia.core.task.reward import check_rewards
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


class EnvGroup:
    """Envs whose tasks are of one kind.

    Attributes:
        env_ids: the envs.
    """

    def __init__(self, kind: TaskKind, env_ids: list[int], slots: list[EnvSlot]):
        self.env_ids = env_ids
        self._kind = kind
        self._slots = slots
        self._index = np.array(env_ids)
        self._limits = np.array([slot.limit for slot in slots])
        self._labels = [tuple(slot.labels.values()) for slot in slots]
        self._tasks = tasks = [slot.task for slot in slots]
        self._metrics = {name: [task.metrics[name] for task in tasks] for name, _ in kind.metrics}
        self._rewards = [task.reward for task in tasks if task.reward is not None]

    def evaluate(
        self, steps: NDArray[np.int64], frame_due: bool, metrics_see_end: bool
    ) -> tuple[list[StepResult], list[int]]:
        """Return the result of this step for each env, which is its last one now, and the envs whose episodes end.

        Args:
            steps: number of steps of the episodes of all envs.
            frame_due: what `render` says in observations.
            metrics_see_end: whether metrics are updated in the last step.
        """
        kind, count, own_steps = self._kind, len(self.env_ids), steps[self._index]
        rows = {name: batch.take_rows(self.env_ids) for name, batch in kind.batches}
        terminated, truncated = np.zeros(count, bool), own_steps >= self._limits
        rewards: Sequence[float] = [0.0] * count
        try:  # in the order that tasks rely on
            if kind.task.ends_itself:
                terminated = np.asarray(kind.task.are_done(self._tasks), bool)
            if kind.metrics:
                self._update_metrics(rows, range(count) if metrics_see_end else _where(~(terminated | truncated)))
            if kind.reward is not None:
                rewards = check_rewards(kind.reward, self.env_ids, kind.reward.calc_all(self._rewards))
        except Exception as mistake:
            mistake.add_note(f'in envs {self.env_ids[0]} to {self.env_ids[-1]}, which are evaluated together')
            raise
        numbers = own_steps.tolist()
        infos = [
            {'episode_id': i, 'task_name': name, 'step': k} for (i, name), k in zip(self._labels, numbers, strict=True)
        ]
        observations = Observation.of_envs(rows, self.env_ids, frame_due)
        columns = (observations, rewards, terminated.tolist(), truncated.tolist(), infos)
        results = list(map(tuple.__new__, repeat(StepResult), zip(*columns, strict=True)))  # without calls of Python
        for slot, result in zip(self._slots, results, strict=True):
            slot.last = result
        return results, [self.env_ids[k] for k in _where(terminated | truncated)]

    def _update_metrics(self, rows: Mapping[str, ObservedRows], chosen: Sequence[int]) -> None:
        """Update the metrics of the envs at these places of the group."""
        if not chosen:
            return
        obs = {name: each.columns([self.env_ids[k] for k in chosen]) for name, each in rows.items()}
        for name, cls in self._kind.metrics:
            cls.update_all([self._metrics[name][k] for k in chosen], obs)


def _where(mask: NDArray[np.bool_]) -> list[int]:
    return np.flatnonzero(mask).tolist()


def group_envs(env_ids: Sequence[int], slots: Sequence[EnvSlot]) -> tuple[list[EnvGroup], list[int]]:
    """Return groups of these envs, and those that are evaluated one by one."""
    by_kind: dict[TaskKind, tuple[list[int], list[EnvSlot]]] = {}
    single: list[int] = []
    for env_id, slot in zip(env_ids, slots, strict=True):
        if slot.kind is None:
            single.append(env_id)
        else:
            ids, members = by_kind.setdefault(slot.kind, ([], []))
            ids.append(env_id)
            members.append(slot)
    return [EnvGroup(kind, *members) for kind, members in by_kind.items()], single
