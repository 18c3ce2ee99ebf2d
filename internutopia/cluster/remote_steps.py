"""Remote steps: the steps that workers make, from the actions that are sent to what has come of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from internutopia.cluster.packing import Packed, SignatureCache, pack, unpack
from internutopia.cluster.remote_episodes import RemoteEpisodes
from internutopia.cluster.waiting import Call
from internutopia.cluster.worker import Reply
from internutopia.cluster.worker_pool import WorkerDiedError, WorkerPool, raise_first
from internutopia.core.episodes.record import EpisodeRecord
from internutopia.core.episodes.results import Results
from internutopia.core.runner.step_result import StepResult


class RemoteSteps:
    """Steps of groups of envs, each group in a worker of its own; results are written in the order of groups.

    Attributes:
        counts: number of steps of each group.
        pending: steps that were begun, by group; None if no env runs.
    """

    def __init__(self, pool: WorkerPool, episodes: RemoteEpisodes, results: Results):
        self.counts = [0] * len(episodes.groups)
        self.pending: dict[int, Call | None] = {}
        self._pool = pool
        self._episodes = episodes
        self._results = results
        self._signatures = [SignatureCache() for _ in episodes.groups]

    def begin(self, groups: Collection[int], actions: Any) -> None:
        """Begin a step of the envs that run. ValueError or KeyError for a bad action: none has moved."""
        packed, known = dict[int, Packed](), False
        while todo := {group: envs for group in groups if (envs := self._episodes.active(group))}:
            packed = {group: pack([actions[env_id] for env_id in envs]) for group, envs in todo.items()}
            tasks = {group: tuple(envs.values()) for group, envs in todo.items()}
            known = all(self._signatures[group].covers(packed[group], tasks[group]) for group in todo)
            if known or self._validate(todo, packed, tasks):
                break
        finished = self._episodes.reported_finished()
        self.pending.update(dict.fromkeys(groups))
        for group, envs in todo.items():
            unchecked = packed[group] if known else None
            self.pending[group] = self._pool.call_async(
                group, 'step', list(envs), self.counts[group], finished, unchecked
            )

    def poll(self) -> list[int]:
        """Return the groups whose step is done; at least one."""
        idle = [group for group, call in self.pending.items() if call is None]
        calls = {group: call for group, call in self.pending.items() if call is not None}
        return idle + self._pool.poll(calls, block=not idle)

    def finish(self, groups: Sequence[int]) -> list[StepResult]:
        """Return the results of groups whose step was begun. Raises what a step ended with."""
        outcomes, errors = self._take_in(groups)
        raise_first(errors)
        env_ids = (env_id for group in groups for env_id in self._episodes.groups[group])
        return [outcomes.get(env_id) or self._episodes.result_without_step(env_id) for env_id in env_ids]

    def settle(self, groups: Iterable[int]) -> None:
        """Receive the results of interrupted steps of these groups."""
        left = [group for group in groups if group in self.pending]
        if left:
            self._take_in(left)

    def on_worker_death(self, group: int) -> None:
        """Update a group whose worker was replaced."""
        self._signatures[group] = SignatureCache()

    def _validate(
        self, todo: Mapping[int, Iterable[int]], packed: Mapping[int, Packed], tasks: Mapping[int, Sequence[int]]
    ) -> bool:
        """Check actions in workers; returns whether all have done that. ValueError or KeyError for a bad one."""
        arguments = {group: (list(env_ids), packed[group]) for group, env_ids in todo.items()}
        answers = self._pool.call_each('validate', arguments)
        died = [group for group, answer in answers.items() if isinstance(answer, WorkerDiedError)]
        raise_first(answers, but=died)
        for group, answer in answers.items():
            if answer is True:
                self._signatures[group].add(packed[group], tasks[group])
        return not died

    def _take_in(self, groups: Sequence[int]) -> tuple[dict[int, StepResult], dict[int, Exception]]:
        """Wait for steps, and receive each while others are still made: results by env id, exceptions by group.

        A step stays pending until it has come: after an interrupt it can be received later.
        """
        outcomes, errors = dict[int, StepResult](), dict[int, Exception]()
        records: dict[int, Sequence[EpisodeRecord]] = {}
        calls = {group: call for group in groups if (call := self.pending[group]) is not None}
        try:
            for group, outcome in self._pool.as_done(calls):
                self._count(group)
                if isinstance(outcome, Reply):
                    outcomes |= self._episodes.on_step(group, unpack(outcome.values))
                    records[group] = outcome.results
                elif not isinstance(outcome, WorkerDiedError):
                    errors[group] = outcome
            for group in groups:
                if group not in calls:
                    self._count(group)
        finally:
            for _, ended in sorted(records.items()):
                for record in ended:
                    self._results.write(record)
            self._results.flush()
        return outcomes, dict(sorted(errors.items()))

    def _count(self, group: int) -> None:
        """Count a step that was made, or whose result is lost."""
        del self.pending[group]
        self.counts[group] += 1
