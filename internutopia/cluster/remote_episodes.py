"""Remote episodes and steps: the main process's record of what workers run, its outcomes and losses.

The queue, the results and what is known of every env are here, so the death of a worker costs nothing but the steps of
its running episodes: they go back to the head of the queue, and their envs report `truncated` with the reason.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from internutopia.cluster.packing import Packed, SignatureCache, pack, unpack
from internutopia.cluster.waiting import Call
from internutopia.cluster.worker import Reply
from internutopia.cluster.worker_pool import WorkerDiedError, WorkerPool, raise_first
from internutopia.config import TaskCfg
from internutopia.core.datahub import DataHub
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.queue import EpisodeRecord
from internutopia.core.episodes.results import Results
from internutopia.core.observations import EMPTY_RESULT, StepResult, repeat_result
from internutopia.core.runner.state import EnvState
from internutopia.util import log


@dataclass
class RemoteEpisode:
    """An episode in an env of a worker, from its reset to the next one.

    `lost` says why its worker has it no more, `requeued` whether it will be run again. `replaced`: a reset is under
    way, so it will not be missed.
    """

    episode: Episode
    task_config: TaskCfg
    ended: bool = False
    lost: str | None = None
    requeued: bool = False
    replaced: bool = False


class LostEpisodes:
    """Episodes whose workers have died: they run again, until more than `retries` workers have died with them."""

    def __init__(self, queue: EpisodeQueue, results: Results, retries: int):
        self._queue = queue
        self._results = results
        self._retries = retries
        self._deaths: Counter[int] = Counter()  # of workers, by the id of the episode that ran there

    def lose(self, running: Mapping[int, tuple[Episode, str | None, int]], reason: str) -> dict[int, tuple[str, bool]]:
        """Put the running episodes of a dead worker back into the queue, except for abandoned ones.

        Args:
            running: by env id, with the type of their task, and their steps.
            reason: of the death.

        Returns:
            For each env the error of its episode, and whether it will be run again.
        """
        lost: dict[int, tuple[str, bool]] = {}
        for env_id, (episode, task_type, steps) in running.items():
            self._deaths[episode.id] += 1
            if again := self._deaths[episode.id] <= self._retries:
                text = f'{reason}; the episode goes back to the queue'
            else:
                text = f'{reason}; so did {self._retries} workers before that ran this episode: it is given up'
                self._results.write(EpisodeRecord.of(episode, task_type, env_id, steps, False, True, {}, text))
            lost[env_id] = text, again
        back = [episode for env_id, (episode, _, _) in running.items() if lost[env_id][1]]
        self._queue.put_back(back)
        log.warning('%s: it is replaced, and %d episodes return to the queue', reason, len(back))
        return lost

    def count(self, episodes: Iterable[Episode]) -> None:
        """Count the death of a worker that was starting these episodes."""
        self._deaths.update(episode.id for episode in episodes)

    def check(self, episodes: Iterable[Episode]) -> None:
        """Raise RuntimeError if too many workers have died with one of these episodes."""
        for episode in episodes:
            if self._deaths[episode.id] > self._retries:
                raise RuntimeError(
                    f'episode {episode.id} (task_configs[{episode.task_index}]): '
                    f'{self._deaths[episode.id]} workers have died while it was started or run'
                )


class RemoteEpisodes:
    """Episodes of all envs, by group: the envs of one worker.

    Attributes:
        envs: what each env holds.
        groups: env ids of each, as many in all.
    """

    def __init__(self, groups: Sequence[range], losses: LostEpisodes):
        self.envs: list[RemoteEpisode | None] = [None] * sum(map(len, groups))
        self.groups = groups
        self._last: list[StepResult | None] = [EMPTY_RESULT] * len(self.envs)  # None: in `_steps`
        # the last step of each group: what was unpacked of it before is its user's, who may change it
        self._steps: dict[int, tuple[list[int], Packed]] = {}
        self._active: dict[int, dict[int, int]] = {}  # what `active` returns, until it changes
        self._losses = losses

    def __getitem__(self, env_id: int) -> RemoteEpisode:
        """Return the record of an env that has an episode."""
        env = self.envs[env_id]
        assert env is not None
        return env

    def last(self, env_id: int) -> StepResult:
        """Return what an env reported last, or showed when its episode began."""
        if self._last[env_id] is None:
            env_ids, results = self._steps[env_id // len(self.groups[0])]
            for each, result in zip(env_ids, unpack(results), strict=True):
                self._last[each] = self._last[each] or result
        last = self._last[env_id]
        assert last is not None
        return last

    def put(self, env_id: int, env: RemoteEpisode | None, obs: dict[str, Any] | None = None) -> None:
        """Set the episode of an env, which has begun with this observation, or none."""
        self.envs[env_id], self._last[env_id] = env, EMPTY_RESULT
        if env is not None:
            info = {'episode_id': env.episode.id, 'task_name': env.episode.task_name, 'step': 0}
            self._last[env_id] = StepResult(obs, 0.0, False, False, info)
        self._active.clear()

    def restore(self, env_id: int, state: EnvState) -> None:
        """Update the record of an env that was put into a state."""
        self[env_id].ended, self._last[env_id] = state.ended, copy.deepcopy(state.last)
        self._active.clear()

    def active(self, group: int) -> Mapping[int, int]:
        """Return the envs of a group whose episode continues in their worker, with the index of its task."""
        if group not in self._active:
            envs = ((env_id, self.envs[env_id]) for env_id in self.groups[group])
            self._active[group] = {i: env.episode.task_index for i, env in envs if env and not (env.ended or env.lost)}
        return self._active[group]

    def by_group(self, env_ids: Iterable[int]) -> dict[int, list[int]]:
        """Split env ids by group, in their order."""
        size = len(self.groups[0])
        sorted_out: dict[int, list[int]] = {}
        for env_id in env_ids:
            sorted_out.setdefault(env_id // size, []).append(env_id)
        return sorted_out

    def reported_finished(self) -> list[str]:
        """Return the names of the tasks that are here and were reported to have reached their goal."""
        if not (reported := DataHub.finished_episodes()):
            return []
        return [env.episode.task_name for env in self.envs if env and env.episode.task_name in reported]

    def on_step(self, group: int, results: Packed) -> dict[int, StepResult]:
        """Record a step of a group, of which the active envs report these results; they are returned by env id."""
        by_env = dict(zip(self.active(group), unpack(results), strict=True))
        self._steps[group] = list(by_env), results
        for env_id in by_env:
            self._last[env_id] = None
        for env_id, result in by_env.items():
            if result.terminated or result.truncated:
                self.last(env_id)  # which the next step does not have
                self[env_id].ended = True
                self._active.pop(group, None)
        return by_env

    def result_without_step(self, env_id: int) -> StepResult:
        """Return the result of an env that has made no step: nothing, or its last result again."""
        env, last = self.envs[env_id], self.last(env_id)
        if env is None:
            return EMPTY_RESULT
        if env.lost is not None and not env.ended:
            env.ended = True
            info = {**(last.info or {}), 'metrics': {}, 'error': env.lost}
            info = {**info, 'requeued': True} if env.requeued else info
            last = self._last[env_id] = StepResult(last.observation, 0.0, False, True, info)
        return repeat_result(last)

    def on_worker_death(self, group: int, reason: str) -> None:
        """Put the running episodes of a dead worker back into the queue, except for abandoned ones."""
        running: dict[int, tuple[Episode, str | None, int]] = {}
        for env_id in self.active(group):
            env, info = self[env_id], self.last(env_id).info or {}
            if env.replaced:
                env.lost = reason
            else:
                running[env_id] = env.episode, env.task_config.type, info.get('step', 0)
        for env_id, (text, again) in self._losses.lose(running, reason).items():
            self[env_id].lost, self[env_id].requeued = text, again
        self._active.pop(group, None)


class RemoteSteps:
    """Steps of groups of envs, each group in its own worker; results are written in the order of groups.

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

        A step stays pending until it has arrived: after an interrupt it can be received later.
        """
        outcomes, errors = dict[int, StepResult](), dict[int, Exception]()
        records: dict[int, Sequence[EpisodeRecord]] = {}
        calls = {group: call for group in groups if (call := self.pending[group]) is not None}
        try:
            for group, outcome in self._pool.as_done(calls):
                self._count(group)
                if isinstance(outcome, Reply):
                    outcomes |= self._episodes.on_step(group, outcome.values)
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
