"""Ray runner: the envs of a distributed run, stepped by worker processes on a Ray cluster, controlled from here.

A call that changes something in several workers is two: the first checks in all of them, and only if that went well
everywhere, the second changes. The death of a worker costs the steps of its running episodes (`remote_episodes.py`),
and another worker takes its place. Envs of other workers do not notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import gymnasium
from typing_extensions import override

from internutopia.cluster.packing import unpack
from internutopia.cluster.remote_episodes import LostEpisodes, RemoteEpisode, RemoteEpisodes, RemoteSteps
from internutopia.cluster.worker import Assignment, Reply, Worker
from internutopia.cluster.worker_pool import WorkerDiedError, WorkerPool, raise_first
from internutopia.cluster.worker_process import WorkerSpec, pickled
from internutopia.config import DistributedConfig, TaskCfg
from internutopia.config.config import RayDistributionCfg
from internutopia.core.datahub import DataHub
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.queue import EpisodeRecord
from internutopia.core.episodes.results import Results, ResultsWriter
from internutopia.core.observations import StepResult, columns_of_results, original
from internutopia.core.robot.env_scene import EnvJoints
from internutopia.core.runner.framing import Box, Camera, union
from internutopia.core.runner.grid import merge_tiles
from internutopia.core.runner.interfaces import Action, EnvRunner, Image, Question, StepWatcher, WorkerEnvs
from internutopia.core.runner.snapshot import rows_of
from internutopia.core.runner.state import EnvState, SceneState
from internutopia.core.task.scene_builder import check_implemented
from internutopia.util.conventions import StepColumns


class RayRunner(EnvRunner):
    """Runner of `proc_num * env_num` envs, see `EnvRunner`: worker `k` has `k * env_num .. (k + 1) * env_num - 1`."""

    def __init__(self, config: DistributedConfig, distribution: RayDistributionCfg, queue: EpisodeQueue):
        check_implemented(config)
        self.dt = float(config.simulator.physics_dt)
        self.env_num = distribution.proc_num * config.env_num
        starts = range(0, self.env_num, config.env_num)
        self.groups: Sequence[range] = [range(start, start + config.env_num) for start in starts]
        self.step_dt = config.simulator.substeps * self.dt
        self.watchers: list[StepWatcher] = []
        self._watcher: bytes | None = None  # of `watch`, for workers that take the place of others, too
        self._closed = False
        self.queue = queue
        results = ResultsWriter(config)
        queue.skip(results.done)
        self.results: Results = results
        self._losses = LostEpisodes(queue, results, distribution.episode_retries)
        self._episodes = RemoteEpisodes(self.groups, self._losses)
        self._joints = EnvJoints(self._episodes.envs)
        self._known: list[set[int]] = [set() for _ in self.groups]  # tasks that each worker has
        self._action_spaces: dict[tuple[int, str, str], gymnasium.spaces.Space[Any] | None] = {}  # by task
        try:
            self._pool = WorkerPool(
                config, distribution, Worker, self._worker_spec, lambda _: (self._watcher,), self._on_worker_death
            )
        except BaseException:
            self.results.close()
            raise
        self._steps = RemoteSteps(self._pool, self._episodes, results)

    @property
    @override
    def envs(self) -> Sequence[RemoteEpisode | None]:
        return self._episodes.envs

    @property
    @override
    def workers(self) -> WorkerEnvs:
        return self

    @property
    @override
    def running(self) -> bool:
        return any(env is not None and not env.ended for env in self.envs)

    @override
    def reset(self, env_ids: Sequence[int]) -> tuple[list[dict[str, Any] | None], list[TaskCfg | None]]:
        """Reset envs; episodes on a worker that dies meanwhile are started again on the next one."""
        self._steps.settle(self._episodes.by_group(env_ids))
        envs = self._episodes.envs
        episodes = [self.queue.take() for _ in env_ids]
        started = {
            env_id: RemoteEpisode(episode, episode.snapshot())
            for env_id, episode in zip(env_ids, episodes, strict=True)
            if episode is not None
        }
        old = {env_id: env for env_id in env_ids if (env := envs[env_id]) is not None and not env.ended}
        for env in old.values():
            env.replaced = True
        self._joints.use()
        try:
            self._prepare_and_reset(env_ids, started)
        except BaseException:
            self._clear([env_id for env_id, env in started.items() if envs[env_id] is env])
            for env in old.values():
                env.replaced = False
            missed = [env.episode for env_id, env in old.items() if env.lost and envs[env_id] is env]
            self.queue.put_back([*episodes, *missed])
            raise
        self._notify_change()
        first = [original(self._episodes.last(i).observation) for i in env_ids]
        return first, [started[i].task_config if i in started else None for i in env_ids]

    @override
    def step(self, actions: Sequence[Action]) -> StepColumns:
        self._pool.check()  # also if no worker has anything to do
        self._steps.settle(range(len(self.groups)))
        for watcher in self.watchers:
            watcher.on_step_start()
        groups = range(len(self.groups))
        self._steps.begin(groups, actions)
        return columns_of_results(self._finish_step(groups))

    @override
    def step_async(self, group: int, actions: Mapping[int, Action]) -> None:
        self._steps.settle([group])
        if group == 0:  # it sets the pace for all
            for watcher in self.watchers:
                watcher.on_step_start()
        self._steps.begin([group], actions)

    @override
    def poll(self) -> list[int]:
        return self._steps.poll()

    @override
    def step_wait(self, group: int) -> list[StepResult]:
        return self._finish_step([group])

    @override
    def get_obs(self) -> list[dict[str, Any] | None]:
        self._pool.check()
        self._steps.settle(range(len(self.groups)))
        observations = [original(self._episodes.last(i).observation) for i in range(self.env_num)]
        active = self._episodes.active
        for group, reply in self._call_all('get_obs', lambda group: (list(active(group)),)).items():
            for env_id, obs in zip(active(group), unpack(reply.values), strict=True):
                observations[env_id] = obs
        return observations

    @override
    def warm_up(self, steps: int, physics: bool) -> None:
        self._pool.check()
        self._steps.settle(range(len(self.groups)))
        for reply in self._call_all('warm_up', lambda group: (steps, physics)).values():
            self._record(reply.results)
        self.results.flush()

    @override
    def render(self, camera: Camera, size: tuple[int, int]) -> Image:
        """Render the envs, except those whose worker has died."""
        shown = [i for i, env in enumerate(self.envs) if env is not None and env.lost is None]
        group = self._group_of_camera(camera)
        box: Box | None = None
        if camera is None or camera == 'top':  # which show all envs
            boxes = self._call_all('box', lambda group: (), range(len(self.groups)))
            box = union([each for each in boxes.values() if each])
        try:
            camera_pose = self._pool.call(group, 'camera_pose', camera, size, box)
        except WorkerDiedError:
            camera_pose = self._pool.call(group, 'camera_pose', camera, size, box)
        tiles = self._call_all('render_tile', lambda group: (camera_pose, size, shown), range(len(self.groups)))
        first = next((group for group, ids in enumerate(self.groups) if shown and shown[0] in ids), 0)
        return merge_tiles([tiles[group] for group in sorted(tiles, key=lambda group: group != first)])

    @override
    def get_state(self, env_ids: Sequence[int]) -> SceneState:
        by_group = self._episodes.by_group(env_ids)
        self._steps.settle(by_group)
        states: dict[int, EnvState] = {}
        for group, ids in by_group.items():
            states.update(zip(ids, self._pool.call(group, 'get_state', ids).envs, strict=True))
        return SceneState(tuple(env_ids), tuple(states[env_id] for env_id in env_ids), max(self._steps.counts))

    @override
    def set_state(self, state: SceneState, env_ids: Sequence[int] | None) -> None:
        self._steps.settle(range(len(self.groups)))
        states = rows_of(state, self.env_num, env_ids)
        by_group = {
            group: SceneState(tuple(ids), tuple(states[i] for i in ids), state.step_count)
            for group, ids in self._episodes.by_group(states).items()
        }
        raise_first(self._pool.call_each('check_state', {g: (own, own.env_ids) for g, own in by_group.items()}))
        outcomes = self._pool.call_each('set_state', {g: (own, own.env_ids) for g, own in by_group.items()})
        errors = [outcome for outcome in outcomes.values() if isinstance(outcome, Exception)]
        if errors:
            changed = [group for group, outcome in outcomes.items() if not isinstance(outcome, Exception)]
            for problems in self._pool.call_each('undo_set_state', dict.fromkeys(changed, ())).values():
                for problem in [problems] if isinstance(problems, Exception) else problems:
                    errors[0].add_note(str(problem))
            raise errors[0]
        for env_id, env_state in states.items():
            self._episodes.restore(env_id, env_state)
        if states.keys() >= {env_id for env_id, env in enumerate(self.envs) if env is not None}:
            self._steps.counts[:] = [state.step_count] * len(self.groups)

    @override
    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        key = self._episodes[env_id].episode.task_index, robot, controller
        if key not in self._action_spaces:
            (group,) = self._episodes.by_group([env_id])
            self._action_spaces[key] = self._pool.call(group, 'action_space', env_id, robot, controller)
        return self._action_spaces[key]

    @override
    def watch(self, begin: Callable[[Any], Callable[[], None]]) -> Callable[[], None]:
        if self._watcher is not None:
            raise ValueError('the workers of this run already have a watcher')
        self._watcher = pickled(begin)
        try:
            self._call_all('watch', lambda group: (self._watcher,), range(len(self.groups)))
        except BaseException:  # else every new worker would begin it, and fail
            self._unwatch()
            raise
        return self._unwatch

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Evaluate queries in workers; see `WorkerEnvs`. There are no answers once this is closed."""
        if self._closed:
            return {}
        idle = [group for group in questions if group not in self._steps.pending]
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

    def _notify_change(self) -> None:
        for watcher in self.watchers:
            watcher.on_change()

    def _unwatch(self) -> None:
        """End what `watch` has begun; may be called twice."""
        if self._watcher is not None:
            self._watcher = None
            self._call_all('unwatch', lambda group: (), range(len(self.groups)))

    def _worker_spec(self, config: DistributedConfig) -> WorkerSpec:
        return WorkerSpec.of(config.model_copy(update={'env_num': self.env_num, 'task_configs': []}))

    def _finish_step(self, groups: Sequence[int]) -> list[StepResult]:
        results = self._steps.finish(groups)
        self._notify_change()
        return results

    def _prepare_and_reset(self, env_ids: Sequence[int], started: Mapping[int, RemoteEpisode]) -> None:
        """Reset envs in workers; those that get no episode are left without one."""
        todo = self._episodes.by_group(env_ids)
        while todo:
            self._losses.check(started[i].episode for ids in todo.values() for i in ids if i in started)
            assignments = {
                group: [self._assignment(group, i, started[i].episode) for i in ids if i in started]
                for group, ids in todo.items()
            }
            prepared = self._pool.call_each('prepare', {g: (own, self.queue.seed) for g, own in assignments.items()})
            died = self._note_deaths(prepared, todo, started)
            raise_first(prepared, but=died)  # nothing has changed
            if died:
                continue
            outcomes = self._pool.call_each('reset', {group: (ids,) for group, ids in todo.items()})
            died = self._note_deaths(outcomes, todo, started)
            for group, outcome in outcomes.items():
                if isinstance(outcome, Reply):
                    for env_id, obs in zip(todo[group], unpack(outcome.values), strict=True):
                        if env_id in started:
                            DataHub.clear(started[env_id].episode.task_name)  # what was reported of another run of it
                        self._episodes.put(env_id, started.get(env_id), obs)
                    self._record(outcome.results)
            try:
                raise_first(outcomes, but=died)
            except Exception:
                self._clear(env_ids)
                raise
            todo = {group: todo[group] for group in died}

    def _note_deaths(
        self, outcomes: Mapping[int, Any], todo: Mapping[int, list[int]], started: Mapping[int, RemoteEpisode]
    ) -> list[int]:
        """Record the deaths of workers while they started episodes; returns their groups."""
        died = [group for group, outcome in outcomes.items() if isinstance(outcome, WorkerDiedError)]
        self._losses.count(started[i].episode for group in died for i in todo[group] if i in started)
        return died

    def _clear(self, env_ids: Sequence[int]) -> None:
        """Leave envs without an episode."""
        self._pool.call_each('clear', {group: (ids,) for group, ids in self._episodes.by_group(env_ids).items()})
        for env_id in env_ids:
            self._episodes.put(env_id, None)

    def _assignment(self, group: int, env_id: int, episode: Episode) -> Assignment:
        known = self._known[group]
        config = None if episode.task_index in known else pickled(episode.snapshot())
        known.add(episode.task_index)
        return Assignment(env_id, episode.id, episode.task_index, config, self._joints.of(env_id))

    def _record(self, results: Iterable[EpisodeRecord]) -> None:
        for result in results:
            self.results.write(result)

    def _on_worker_death(self, group: int, reason: str) -> None:
        self._known[group] = set()
        self._steps.on_worker_death(group)
        self._episodes.on_worker_death(group, reason)

    def _call_all(
        self, method: str, arguments: Callable[[int], tuple[Any, ...]], groups: Iterable[int] | None = None
    ) -> dict[int, Any]:
        """Call a method of all workers whose envs run (or of some); those that die are not in the answer."""
        called = [g for g in range(len(self.groups)) if self._episodes.active(g)] if groups is None else groups
        answers = self._pool.call_each(method, {group: arguments(group) for group in called})
        died = [group for group, answer in answers.items() if isinstance(answer, WorkerDiedError)]
        raise_first(answers, but=died)
        return {group: answer for group, answer in answers.items() if group not in died}

    def _group_of_camera(self, camera: Camera) -> int:
        if not isinstance(camera, str):
            return 0
        number = camera.removeprefix('/World/env_').partition('/')[0]
        return int(number) // len(self.groups[0]) if number.isdecimal() and int(number) < self.env_num else 0
