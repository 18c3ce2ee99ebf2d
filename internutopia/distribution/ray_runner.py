"""Ray runner: the envs of a distributed run, stepped by worker processes on a Ray cluster, led from here.

The queue, the results and what is known of every env are kept here, so the death of a worker costs nothing but the
steps of its running episodes: they go back to the head of the queue, their envs report `truncated` with the reason, and
another worker takes the place. Envs of other workers do not notice.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import gymnasium
from typing_extensions import override

from internutopia.compat.v2.joints import EnvJoints
from internutopia.core.config import DistributedConfig, TaskCfg
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.datahub import DataHub
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.record import EpisodeRecord
from internutopia.core.episodes.results import Results, ResultsWriter
from internutopia.core.runner.base import Action, EnvRunner, Image, Question, StepWatcher, WorkerEnvs
from internutopia.core.runner.grid import merge_tiles
from internutopia.core.runner.snapshot import rows_of
from internutopia.core.runner.state import EnvState, SceneState
from internutopia.core.runner.step_result import EMPTY_RESULT, StepResult, repeat_result
from internutopia.core.task.scene_builder import check_implemented
from internutopia.core.util import log
from internutopia.distribution.episode import RemoteEpisode
from internutopia.distribution.packing import pack, unpack
from internutopia.distribution.signatures import SignatureCache
from internutopia.distribution.waiting import Call
from internutopia.distribution.worker import Assignment, Reply, Worker
from internutopia.distribution.worker_pool import WorkerDiedError, WorkerPool
from internutopia.distribution.worker_process import WorkerSpec, pickled


class RayRunner(EnvRunner):
    """Runs `proc_num * env_num` envs; see `EnvRunner`. Worker `k` has envs `k * env_num .. (k + 1) * env_num - 1`."""

    def __init__(self, config: DistributedConfig, distribution: RayDistributionCfg, queue: EpisodeQueue):
        check_implemented(config)
        self.dt = float(config.simulator.physics_dt)
        self.env_num = distribution.proc_num * config.env_num
        starts = range(0, self.env_num, config.env_num)
        self.groups: Sequence[range] = [range(start, start + config.env_num) for start in starts]
        self.step_dt = config.simulator.substeps * self.dt
        self.watchers: list[StepWatcher] = []
        self._envs: list[RemoteEpisode | None] = [None] * self.env_num
        self._watcher: bytes | None = None  # of `watch`, for workers that take the place of others, too
        self._closed = False
        self._joints = EnvJoints(self._envs)
        self.queue = queue
        results = ResultsWriter(config)
        queue.skip(results.done)
        self.results: Results = results
        self._retries = distribution.episode_retries
        self._deaths: Counter[int] = Counter()  # of workers, by the id of the episode that ran there
        self._known: list[set[int]] = [set() for _ in self.groups]  # tasks that each worker has
        self._signatures = [SignatureCache() for _ in self.groups]
        self._steps = [0] * len(self.groups)
        self._action_spaces: dict[tuple[int, str, str], gymnasium.spaces.Space[Any] | None] = {}  # by task
        self._pending: dict[
            int, Call | None
        ] = {}  # the step of each group, from `step_async` to `step_wait`; None if no env runs
        try:
            self._pool = WorkerPool(
                config, distribution, Worker, self._worker_spec, lambda _: (self._watcher,), self._on_worker_death
            )
        except BaseException:
            self.results.close()
            raise

    @property
    @override
    def envs(self) -> Sequence[RemoteEpisode | None]:
        return self._envs

    @property
    @override
    def workers(self) -> WorkerEnvs:
        return self

    @property
    @override
    def running(self) -> bool:
        return any(env is not None and not env.ended for env in self._envs)

    @override
    def reset(self, env_ids: Sequence[int]) -> tuple[list[dict[str, Any] | None], list[TaskCfg | None]]:
        """Episodes on a worker that dies meanwhile are started again on the next one."""
        episodes = [self.queue.take() for _ in env_ids]
        started = {
            env_id: RemoteEpisode(episode, episode.snapshot())
            for env_id, episode in zip(env_ids, episodes, strict=True)
            if episode is not None
        }
        old = {env_id: env for env_id in env_ids if (env := self._envs[env_id]) is not None and not env.ended}
        for env in old.values():
            env.replaced = True
        self._joints.use()
        try:
            self._prepare_and_reset(env_ids, started)
        except BaseException:
            self._clear([env_id for env_id, env in started.items() if self._envs[env_id] is env])
            for env in old.values():
                env.replaced = False
            missed = [env.episode for env_id, env in old.items() if env.lost and self._envs[env_id] is env]
            self.queue.put_back([*episodes, *missed])
            raise
        self._tell_change()
        first = [copy.copy(started[i].last[0]) if i in started else None for i in env_ids]
        return first, [started[i].task_config if i in started else None for i in env_ids]

    @override
    def step(self, actions: Sequence[Action]) -> list[StepResult]:
        self._pool.check()  # also if no worker has anything to do
        for watcher in self.watchers:
            watcher.on_step_start()
        todo = {group: ids for group in range(len(self.groups)) if (ids := self._active(group))}
        finished = self._finished_names()
        outcomes: dict[int, StepResult] = {}
        errors: list[Exception] = []
        while todo:
            steps = self._start_step(todo, actions, finished)
            retry: dict[int, list[int]] = {}
            for group, outcome in self._pool.gather(steps).items():
                if isinstance(outcome, WorkerDiedError):
                    if ids := self._active(group):  # another one died before all had checked: nothing has moved here
                        retry[group] = ids
                elif isinstance(outcome, Exception):
                    errors.append(outcome)
                else:
                    outcomes.update(self._take_results(todo[group], outcome))
            todo = retry
        self._steps = [count + 1 for count in self._steps]
        if errors:
            self.results.flush()
            raise errors[0]
        results = [self._result_of(env_id, outcomes) for env_id in range(self.env_num)]
        self.results.flush()
        self._tell_change()
        return results

    @override
    def step_async(self, group: int, actions: Mapping[int, Action]) -> None:
        if group == 0:  # it sets the pace for all
            for watcher in self.watchers:
                watcher.on_step_start()
        env_ids = self._active(group)
        if not env_ids:
            self._pending[group] = None
        else:
            self._pending.update(self._start_step({group: env_ids}, actions, self._finished_names()))

    @override
    def poll(self) -> list[int]:
        idle = [group for group, call in self._pending.items() if call is None]
        calls = {group: call for group, call in self._pending.items() if call is not None}
        return idle + self._pool.poll(calls, block=not idle)

    @override
    def step_wait(self, group: int) -> list[StepResult]:
        env_ids, call = self._active(group), self._pending.pop(group)
        outcomes: dict[int, StepResult] = {}
        if call is not None:
            (outcome,) = self._pool.gather({group: call}).values()
            if isinstance(outcome, Reply):
                outcomes = self._take_results(env_ids, outcome)
            elif not isinstance(outcome, WorkerDiedError):
                raise outcome
        self._steps[group] += 1
        results = [self._result_of(env_id, outcomes) for env_id in self.groups[group]]
        self.results.flush()
        self._tell_change()
        return results

    @override
    def get_obs(self) -> list[dict[str, Any] | None]:
        self._pool.check()
        observations = [None if env is None else copy.deepcopy(env.last[0]) for env in self._envs]
        for group, reply in self._call_all('get_obs', lambda group: (self._active(group),)).items():
            for env_id, obs in zip(self._active(group), unpack(reply.values), strict=True):
                observations[env_id] = obs
        return observations

    @override
    def warm_up(self, steps: int, physics: bool) -> None:
        self._pool.check()
        for reply in self._call_all('warm_up', lambda group: (steps, physics)).values():
            self._record(reply.results)
        self.results.flush()

    @override
    def render(self, camera: str | tuple[Any, Any] | None, size: tuple[int, int]) -> Image:
        """Envs whose worker has died are not in the picture."""
        shown = [i for i, env in enumerate(self._envs) if env is not None and env.lost is None]
        group = self._group_of_camera(camera)
        try:
            camera_pose = self._pool.call(group, 'camera_pose', camera, size)
        except WorkerDiedError:
            camera_pose = self._pool.call(group, 'camera_pose', camera, size)
        tiles = self._call_all('render_tile', lambda group: (camera_pose, size, shown), range(len(self.groups)))
        first = next((group for group, ids in enumerate(self.groups) if shown and shown[0] in ids), 0)
        return merge_tiles([tiles[group] for group in sorted(tiles, key=lambda group: group != first)])

    @override
    def get_state(self, env_ids: Sequence[int]) -> SceneState:
        states: dict[int, EnvState] = {}
        for group, ids in self._by_group(env_ids).items():
            states.update(zip(ids, self._pool.call(group, 'get_state', ids).envs, strict=True))
        return SceneState(tuple(env_ids), tuple(states[env_id] for env_id in env_ids), max(self._steps))

    @override
    def set_state(self, state: SceneState, env_ids: Sequence[int] | None) -> None:
        states = rows_of(state, self.env_num, env_ids)
        by_group = {
            group: SceneState(tuple(ids), tuple(states[i] for i in ids), state.step_count)
            for group, ids in self._by_group(states).items()
        }
        checks = [self._pool.call_async(group, 'check_state', own, own.env_ids) for group, own in by_group.items()]
        done = {
            group: self._pool.call_async(group, 'set_state', own, own.env_ids, after=checks)
            for group, own in by_group.items()
        }
        outcomes = self._pool.gather(done)
        errors = [outcome for outcome in outcomes.values() if isinstance(outcome, Exception)]
        if errors:
            # last what only follows from another one: the death of a worker also ends the calls that depend on it
            errors.sort(key=lambda error: isinstance(error, WorkerDiedError) and error.worker is None)
            changed = [group for group, outcome in outcomes.items() if not isinstance(outcome, Exception)]
            undone = self._pool.gather({group: self._pool.call_async(group, 'undo_set_state') for group in changed})
            for problems in undone.values():
                for problem in [problems] if isinstance(problems, Exception) else problems:
                    errors[0].add_note(str(problem))
            raise errors[0]
        for env_id, env_state in states.items():
            env = self._env(env_id)
            env.ended, env.last = env_state.ended, copy.deepcopy(env_state.last)
        if states.keys() >= {env_id for env_id, env in enumerate(self._envs) if env is not None}:
            self._steps = [state.step_count] * len(self.groups)

    @override
    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        key = self._env(env_id).episode.task_index, robot, controller
        if key not in self._action_spaces:
            (group,) = self._by_group([env_id])
            self._action_spaces[key] = self._pool.call(group, 'action_space', env_id, robot, controller)
        return self._action_spaces[key]

    @override
    def watch(self, begin: Callable[[Any], Callable[[], None]]) -> Callable[[], None]:
        if self._watcher is not None:
            raise ValueError('the workers of this run are watched already')
        self._watcher = pickled(begin)
        self._call_all('watch', lambda group: (self._watcher,), range(len(self.groups)))
        return self._unwatch

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Have questions answered in workers; see `WorkerEnvs`. Nobody answers once this is closed."""
        if self._closed:
            return {}
        idle = [group for group in questions if group not in self._pending]
        return self._call_all('ask', lambda group: (pickled(questions[group]),), idle)

    @override
    def close(self) -> None:
        self._closed = True
        try:
            with suppress(ConnectionError):  # they end with the cluster
                self._unwatch()
        finally:
            self._joints.close()
            self._pool.shutdown()
            self.results.close()

    def _tell_change(self) -> None:
        for watcher in self.watchers:
            watcher.on_change()

    def _unwatch(self) -> None:
        """End what `watch` has begun; twice is fine."""
        if self._watcher is not None:
            self._watcher = None
            self._call_all('unwatch', lambda group: (), range(len(self.groups)))

    def _worker_spec(self, config: DistributedConfig) -> WorkerSpec:
        return WorkerSpec.of(config.model_copy(update={'env_num': self.env_num, 'task_configs': []}))

    def _start_step(self, todo: Mapping[int, Sequence[int]], actions: Any, finished: Sequence[str]) -> dict[int, Call]:
        """Have workers make a step with these envs. ValueError or KeyError for a bad action: none has moved."""
        packed = {group: pack([actions[env_id] for env_id in env_ids]) for group, env_ids in todo.items()}
        tasks = {g: [self._env(env_id).episode.task_index for env_id in env_ids] for g, env_ids in todo.items()}
        if all(self._signatures[group].covers(packed[group], tasks[group]) for group in todo):
            return {
                group: self._pool.call_async(group, 'step', env_ids, self._steps[group], finished, packed[group])
                for group, env_ids in todo.items()
            }
        checks = {group: self._pool.call_async(group, 'validate', ids, packed[group]) for group, ids in todo.items()}
        steps = {
            group: self._pool.call_async(group, 'step', ids, self._steps[group], finished, None, after=checks.values())
            for group, ids in todo.items()
        }
        for group, answer in self._pool.gather(checks).items():
            if isinstance(answer, Exception) and not isinstance(answer, WorkerDiedError):
                raise answer
            if answer is True:
                self._signatures[group].add(packed[group], tasks[group])
        return steps

    def _prepare_and_reset(self, env_ids: Sequence[int], started: Mapping[int, RemoteEpisode]) -> None:
        """Have workers reset envs; those that get no episode are left without one."""
        todo = self._by_group(env_ids)
        while todo:
            self._check_retries(started[i] for ids in todo.values() for i in ids if i in started)
            preparations: dict[int, Call] = {}
            for group, ids in todo.items():
                assignments = [self._assignment(group, i, started[i].episode) for i in ids if i in started]
                preparations[group] = self._pool.call_async(group, 'prepare', assignments, self.queue.seed)
            starts = {g: self._pool.call_async(g, 'reset', ids, after=preparations.values()) for g, ids in todo.items()}
            retry: dict[int, list[int]] = {}
            errors: list[Exception] = []
            for group, outcome in self._pool.gather(starts).items():
                if isinstance(outcome, WorkerDiedError):
                    retry[group] = todo[group]
                    if outcome.worker == group:
                        self._deaths.update(started[i].episode.id for i in todo[group] if i in started)
                elif isinstance(outcome, Exception):
                    errors.append(outcome)
                else:
                    self._note_reset(todo[group], outcome, started)
            if errors:
                self._undo(env_ids, preparations)
                raise errors[0]
            todo = retry

    def _note_reset(self, env_ids: Sequence[int], reply: Reply, started: Mapping[int, RemoteEpisode]) -> None:
        for env_id, obs in zip(env_ids, unpack(reply.values), strict=True):
            if env_id in started:
                started[env_id].on_reset(obs)
                DataHub.clear(started[env_id].episode.task_name)  # what was reported of another run of it
            self._envs[env_id] = started.get(env_id)
        self._record(reply.results)

    def _undo(self, env_ids: Sequence[int], preparations: Mapping[int, Call]) -> None:
        """After a mistake. One that was found while preparing changed nothing; else the envs are without an episode."""
        outcomes = self._pool.gather(preparations)
        if not any(isinstance(outcome, Exception) for outcome in outcomes.values()):
            self._clear(env_ids)

    def _clear(self, env_ids: Sequence[int]) -> None:
        """Leave envs without an episode."""
        calls = {group: self._pool.call_async(group, 'clear', ids) for group, ids in self._by_group(env_ids).items()}
        self._pool.gather(calls)
        for env_id in env_ids:
            self._envs[env_id] = None

    def _assignment(self, group: int, env_id: int, episode: Episode) -> Assignment:
        known = self._known[group]
        config = None if episode.task_index in known else pickled(episode.snapshot())
        known.add(episode.task_index)
        return Assignment(env_id, episode.id, episode.task_index, config, self._joints.of(env_id))

    def _take_results(self, env_ids: Sequence[int], reply: Reply) -> dict[int, StepResult]:
        """Take in what came of a step."""
        outcomes = {i: StepResult(*values) for i, values in zip(env_ids, unpack(reply.values), strict=True)}
        for env_id, result in outcomes.items():
            self._env(env_id).on_step(result)
        self._record(reply.results)
        return outcomes

    def _record(self, results: Iterable[EpisodeRecord]) -> None:
        for result in results:
            self.results.write(result)

    def _result_of(self, env_id: int, outcomes: Mapping[int, StepResult]) -> StepResult:
        """What an env reports after a step."""
        env = self._envs[env_id]
        if env_id in outcomes:
            return outcomes[env_id]
        if env is None:
            return EMPTY_RESULT
        if env.lost is not None and not env.ended:
            env.on_loss_reported()
        return repeat_result(env.last)

    def _on_worker_death(self, group: int, reason: str) -> None:
        """A worker has died: its running episodes go back to the queue."""
        self._known[group] = set()
        self._signatures[group] = SignatureCache()
        back: list[Episode] = []
        for env_id in self._active(group):
            env = self._env(env_id)
            if env.replaced:
                env.lost = reason
                continue
            self._deaths[env.episode.id] += 1
            if self._deaths[env.episode.id] > self._retries:
                env.lost = f'{reason}; so did {self._retries} workers before that ran this episode: it is given up'
                self.results.write(env.failure_result(env_id))
            else:
                env.lost, env.requeued = f'{reason}; the episode goes back to the queue', True
                back.append(env.episode)
        self.queue.put_back(back)
        log.warning('%s: another one takes its place, %d episodes go back to the queue', reason, len(back))

    def _check_retries(self, envs: Iterable[RemoteEpisode]) -> None:
        for env in envs:
            if self._deaths[env.episode.id] > self._retries:
                raise RuntimeError(
                    f'episode {env.episode.id} (task_configs[{env.episode.task_index}]): '
                    f'{self._deaths[env.episode.id]} workers have died while it was started or run'
                )

    def _call_all(
        self, method: str, arguments: Callable[[int], tuple[Any, ...]], groups: Iterable[int] | None = None
    ) -> dict[int, Any]:
        """Call a method of all workers whose envs run (or of some); those that die are not in the answer."""
        asked = [g for g in range(len(self.groups)) if self._active(g)] if groups is None else groups
        calls = {group: self._pool.call_async(group, method, *arguments(group)) for group in asked}
        answers = self._pool.gather(calls)
        for answer in answers.values():
            if isinstance(answer, Exception) and not isinstance(answer, WorkerDiedError):
                raise answer
        return {group: answer for group, answer in answers.items() if not isinstance(answer, WorkerDiedError)}

    def _active(self, group: int) -> list[int]:
        """The envs of a group whose episode goes on in their worker."""
        return [
            env_id
            for env_id in self.groups[group]
            if (env := self._envs[env_id]) is not None and not env.ended and env.lost is None
        ]

    def _env(self, env_id: int) -> RemoteEpisode:
        env = self._envs[env_id]
        assert env is not None
        return env

    def _by_group(self, env_ids: Iterable[int]) -> dict[int, list[int]]:
        """Env ids by group, in their order."""
        size = len(self.groups[0])
        sorted_out: dict[int, list[int]] = {}
        for env_id in env_ids:
            sorted_out.setdefault(env_id // size, []).append(env_id)
        return sorted_out

    def _finished_names(self) -> list[str]:
        reported = DataHub.finished_episodes()
        return [env.episode.task_name for env in self._envs if env and env.episode.task_name in reported]

    def _group_of_camera(self, camera: str | tuple[Any, Any] | None) -> int:
        if not isinstance(camera, str):
            return 0
        number = camera.removeprefix('/World/env_').partition('/')[0]
        return int(number) // len(self.groups[0]) if number.isdecimal() and int(number) < self.env_num else 0
