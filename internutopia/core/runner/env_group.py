"""Env slots and groups: the episode in an env, and envs that the list API evaluates together, all at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.observations import Observation, ObservedRows, StepResult
from internutopia.core.robot.batched import BatchedRobot
from internutopia.core.task.preparer import PreparedEpisode
from internutopia.core.task.reward import check_rewards
from internutopia.core.task.task import BaseTask, TaskKind, kind_of, observed_batches
from internutopia.util.conventions import StepColumns


class EnvSlot:
    """An episode in an env, from its reset to the next one.

    Args:
        env_id: the env.
        prepared: the episode and its scene.
        task: the task that runs.
        steps: number of steps of the episode in each env, `(n,)`, of the runner.
        running: which envs run an episode, `(n,)`, of the runner.
        last: results of the last step of each env in the list API, of the runner.

    Attributes:
        env_id: the env.
        prepared: the episode and its scene, with this task.
        task: the task that runs.
        labels: entries of every `info` of the list API.
        batches: batched robots, by name, that give the observation in the list API; None if code of one env does.
        kind: that of its task, whose envs the list API evaluates together; None if code of one env is called.
        limit: step at which the episode is truncated.
    """

    batches: list[tuple[str, BatchedRobot]] | None = None
    kind: TaskKind | None = None
    limit = math.inf

    def __init__(
        self, env_id: int, prepared: PreparedEpisode, task: BaseTask, steps: Any, running: Any, last: StepColumns
    ):
        self.env_id = env_id
        self.prepared = replace(prepared, task=task)
        self.task = task
        self.labels = {'episode_id': prepared.episode.id, 'task_name': task.name}
        self._steps, self._running, self._last = steps, running, last

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
    def last(self) -> StepResult:
        """Result of its last step in the list API."""
        return StepResult(*[column[self.env_id] for column in self._last])

    @last.setter
    def last(self, result: StepResult) -> None:
        for column, value in zip(self._last, result, strict=True):
            column[self.env_id] = value

    @property
    def step(self) -> int:
        """Number of steps made."""
        return int(self._steps[self.env_id])

    @property
    def ended(self) -> bool:
        """True if the episode has ended: the env stands still until it is reset."""
        return not self._running[self.env_id]


class EnvGroup:
    """Envs whose tasks are of one kind.

    Attributes:
        env_ids: the envs.
    """

    def __init__(self, kind: TaskKind, slots: list[EnvSlot]):
        env_ids, limits, tasks, episodes, names = zip(
            *[(slot.env_id, slot.limit, slot.task, *slot.labels.values()) for slot in slots], strict=True
        )
        self.env_ids = list(env_ids)
        self._kind, self._tasks, self._episodes, self._names = kind, tasks, episodes, names
        self._index, self._limits = np.array(env_ids), np.array(limits)
        self._metrics = {name: [task.metrics[name] for task in tasks] for name, _ in kind.metrics}
        self._rewards = [task.reward for task in tasks] if kind.reward is not None else []

    def evaluate(
        self, last: StepColumns, steps: NDArray[np.int64], frame_due: bool, metrics_see_end: bool
    ) -> list[int]:
        """Write the results of this step; returns the envs whose episodes end.

        Args:
            last: results of the last step of all envs, in which those of the group are replaced.
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
                if terminated.shape != (count,):
                    raise ValueError(f'{kind.task.__name__}.are_done: got {terminated.shape}, expected ({count},)')
            ends = terminated | truncated
            if kind.metrics:
                self._update_metrics(rows, range(count) if metrics_see_end else np.flatnonzero(~ends).tolist())
            if kind.reward is not None:
                rewards = check_rewards(kind.reward, self.env_ids, kind.reward.calc_all(self._rewards))
        except Exception as mistake:
            mistake.add_note(f'in envs {self.env_ids[0]} to {self.env_ids[-1]}, which are evaluated together')
            raise
        infos = [
            {'episode_id': episode, 'task_name': name, 'step': step}
            for episode, name, step in zip(self._episodes, self._names, own_steps.tolist(), strict=True)
        ]
        observations = Observation.of_envs(rows, self.env_ids, frame_due)
        columns = (observations, rewards, terminated.tolist(), truncated.tolist(), infos)
        for of_all, own in zip(last, columns, strict=True):
            if count == len(of_all):
                of_all[:] = own
            else:
                for env_id, value in zip(self.env_ids, own, strict=True):
                    of_all[env_id] = value
        return self._index[ends].tolist()

    def _update_metrics(self, rows: Mapping[str, ObservedRows], chosen: Sequence[int]) -> None:
        """Update the metrics of the envs at these places of the group."""
        if not chosen:
            return
        obs = {name: each.columns([self.env_ids[k] for k in chosen]) for name, each in rows.items()}
        for name, cls in self._kind.metrics:
            cls.update_all([self._metrics[name][k] for k in chosen], obs)


def group_envs(slots: Iterable[EnvSlot]) -> tuple[list[EnvGroup], list[int]]:
    """Return groups of envs, and those that are evaluated one by one."""
    by_kind: dict[TaskKind, list[EnvSlot]] = {}
    single: list[int] = []
    for slot in slots:
        if slot.kind is None:
            single.append(slot.env_id)
        else:
            by_kind.setdefault(slot.kind, []).append(slot)
    return list(starmap(EnvGroup, by_kind.items())), single
