"""What steps the envs of a distributed run: worker processes on a Ray cluster, led from here.

The queue, the results and what is known of every env are kept here, so the death of a worker costs nothing but the
steps of its running episodes: they go back to the head of the queue, their envs report `truncated` with the reason, and
another worker takes the place. Envs of other workers do not notice.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium

from internutopia.core.config import DistributedConfig, TaskCfg
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.datahub import DataHub
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.results import Results, ResultsWriter
from internutopia.core.runner.base import EMPTY_RESULT, Action, Image, StepResult, repeated
from internutopia.core.runner.grid import merge
from internutopia.core.runner.snapshot import EnvState, SceneState, rows_of
from internutopia.core.scene.env_joints import EnvJoints
from internutopia.core.task.scene_builder import check_implemented
from internutopia.core.util import log
from internutopia.distribution.episode import RemoteEpisode
from internutopia.distribution.packing import pack, unpack
from internutopia.distribution.signatures import SignatureCache
from internutopia.distribution.worker import Assignment, Reply
from internutopia.distribution.worker_pool import Call, WorkerDied, WorkerPool


class RayRunner:
    """Runs `proc_num * env_num` envs; see `EnvRunner`. Worker `k` has envs `k * env_num .. (k + 1) * env_num - 1`."""

    def __init__(self, config: DistributedConfig, distribution: RayDistributionCfg, queue: EpisodeQueue):
        check_implemented(config)
        self.dt = float(config.simulator.physics_dt)
        self.env_num = distribution.proc_num * config.env_num
        starts = range(0, self.env_num, config.env_num)
        self.groups: Sequence[range] = [range(start, start + config.env_num) for start in starts]
        self.envs: list[RemoteEpisode | None] = [None] * self.env_num
        self._joints = EnvJoints(self.envs)
        self.queue = queue
        results = ResultsWriter(config)
        queue.skip(results.done)
        self.results: Results = results
        self._retries = distribution.episode_retries
        self._deaths: Counter[int] = Counter()  # of workers, by the id of the episode that ran there
        self._known: list[set[int]] = [set() for _ in self.groups]  # tasks that each worker has
        self._forms = [SignatureCache() for _ in self.groups]
        self._steps = [0] * len(self.groups)
        self._action_spaces: dict[tuple[int, str, str], gymnasium.spaces.Space[Any] | None] = {}  # by task
        self._at_work: dict[int, Call | None] = {}  # the step of each group that was launched; None if no env runs
        try:
            self._crew = WorkerPool(config, distribution, self.env_num, self._lose)
        except BaseException:
            self.results.close()
            raise

    @property
    def running(self) -> bool:
        """Whether an episode goes on in any env."""
        return any(env is not None and not env.ended for env in self.envs)

    def reset(self, env_ids: Sequence[int]) -> tuple[list[dict[str, Any] | None], list[TaskCfg | None]]:
        """See `EnvRunner.reset`. Episodes on a worker that dies meanwhile are started again on the next one."""
        episodes = [self.queue.take() for _ in env_ids]
        started = {
            env_id: RemoteEpisode(episode, episode.snapshot())
            for env_id, episode in zip(env_ids, episodes, strict=True)
            if episode is not None
        }
        old = {env_id: env for env_id in env_ids if (env := self.envs[env_id]) is not None and not env.ended}
        for env in old.values():
            env.replaced = True
        self._joints.use()
        try:
            self._plan_and_start(env_ids, started)
        except BaseException:
            self._clear([env_id for env_id, env in started.items() if self.envs[env_id] is env])
            for env in old.values():
                env.replaced = False
            missed = [env.episode for env_id, env in old.items() if env.lost and self.envs[env_id] is env]
            self.queue.put_back([*episodes, *missed])
            raise
        first = [copy.copy(started[i].last[0]) if i in started else None for i in env_ids]
        return first, [started[i].task_config if i in started else None for i in env_ids]

    def step(self, actions: Sequence[Action]) -> list[StepResult]:
        """See `EnvRunner.step`."""
        self._crew.check()  # also if no worker has anything to do
        todo = {group: ids for group in range(len(self.groups)) if (ids := self._active(group))}
        finished = self._finished_names()
        outcomes: dict[int, StepResult] = {}
        errors: list[Exception] = []
        while todo:
            steps = self._begin(todo, actions, finished)
            again: dict[int, list[int]] = {}
            for group, outcome in self._crew.gather(steps).items():
                if isinstance(outcome, WorkerDied):
                    if ids := self._active(group):  # another one died before all had checked: nothing has moved here
                        again[group] = ids
                elif isinstance(outcome, Exception):
                    errors.append(outcome)
                else:
                    outcomes.update(self._absorb(todo[group], outcome))
            todo = again
        self._steps = [count + 1 for count in self._steps]
        if errors:
            self.results.flush()
            raise errors[0]
        results = [self._outcome(env_id, outcomes) for env_id in range(self.env_num)]
        self.results.flush()
        return results

    def step_async(self, group: int, actions: Mapping[int, Action]) -> None:
        """See `EnvRunner.step_async`."""
        env_ids = self._active(group)
        if not env_ids:
            self._at_work[group] = None
        else:
            self._at_work.update(self._begin({group: env_ids}, actions, self._finished_names()))

    def poll(self) -> list[int]:
        """See `EnvRunner.poll`."""
        idle = [group for group, call in self._at_work.items() if call is None]
        calls = {group: call for group, call in self._at_work.items() if call is not None}
        return idle + self._crew.ready(calls, block=not idle)

    def step_wait(self, group: int) -> list[StepResult]:
        """See `EnvRunner.step_wait`."""
        env_ids, call = self._active(group), self._at_work.pop(group)
        outcomes: dict[int, StepResult] = {}
        if call is not None:
            (outcome,) = self._crew.gather({group: call}).values()
            if isinstance(outcome, Reply):
                outcomes = self._absorb(env_ids, outcome)
            elif not isinstance(outcome, WorkerDied):
                raise outcome
        self._steps[group] += 1
        results = [self._outcome(env_id, outcomes) for env_id in self.groups[group]]
        self.results.flush()
        return results

    def get_obs(self) -> list[dict[str, Any] | None]:
        """See `EnvRunner.get_obs`."""
        self._crew.check()
        observations = [None if env is None else copy.deepcopy(env.last[0]) for env in self.envs]
        for group, reply in self._ask_all('get_obs', lambda group: (self._active(group),)).items():
            for env_id, obs in zip(self._active(group), unpack(reply.values), strict=True):
                observations[env_id] = obs
        return observations

    def warm_up(self, steps: int, physics: bool) -> None:
        """See `EnvRunner.warm_up`."""
        self._crew.check()
        for reply in self._ask_all('warm_up', lambda group: (steps, physics)).values():
            self._record(reply.results)
        self.results.flush()

    def render(self, camera: str | tuple[Any, Any] | None, size: tuple[int, int]) -> Image:
        """See `EnvRunner.render`. Envs whose worker has died are not in the picture."""
        shown = [i for i, env in enumerate(self.envs) if env is not None and env.lost is None]
        group = self._group_of_camera(camera)
        try:
            eye = self._crew.ask(group, 'eye', camera, size)
        except WorkerDied:
            eye = self._crew.ask(group, 'eye', camera, size)
        layers = self._ask_all('draw', lambda group: (eye, size, shown), range(len(self.groups)))
        first = next((group for group, ids in enumerate(self.groups) if shown and shown[0] in ids), 0)
        return merge([layers[group] for group in sorted(layers, key=lambda group: group != first)])

    def get_state(self, env_ids: Sequence[int]) -> SceneState:
        """See `EnvRunner.get_state`."""
        rows: dict[int, EnvState] = {}
        for group, ids in self._by_group(env_ids).items():
            rows.update(zip(ids, self._crew.ask(group, 'capture', ids).envs, strict=True))
        return SceneState(tuple(env_ids), tuple(rows[env_id] for env_id in env_ids), max(self._steps))

    def set_state(self, state: SceneState, env_ids: Sequence[int] | None) -> None:
        """See `EnvRunner.set_state`."""
        rows = rows_of(state, self.env_num, env_ids)
        parts = {
            group: SceneState(tuple(ids), tuple(rows[i] for i in ids), state.step_count)
            for group, ids in self._by_group(rows).items()
        }
        checks = [self._crew.call(group, 'check_state', part, part.env_ids) for group, part in parts.items()]
        done = {g: self._crew.call(g, 'restore', part, part.env_ids, after=checks) for g, part in parts.items()}
        for outcome in self._crew.gather(done).values():
            if isinstance(outcome, Exception):
                raise outcome
        for env_id, saved in rows.items():
            env = self.envs[env_id]
            assert env is not None
            env.ended, env.last = saved.ended, copy.deepcopy(saved.last)
        if rows.keys() >= {env_id for env_id, env in enumerate(self.envs) if env is not None}:
            self._steps = [state.step_count] * len(self.groups)

    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        """See `EnvRunner.action_space`."""
        key = self._held(env_id).episode.task_index, robot, controller
        if key not in self._action_spaces:
            (group,) = self._by_group([env_id])
            self._action_spaces[key] = self._crew.ask(group, 'action_space', env_id, robot, controller)
        return self._action_spaces[key]

    def close(self) -> None:
        """See `EnvRunner.close`."""
        self._joints.close()
        self._crew.dismiss()
        self.results.close()

    def _begin(self, todo: Mapping[int, Sequence[int]], actions: Any, finished: Sequence[str]) -> dict[int, Call]:
        """Have workers make a step with these envs. ValueError or KeyError for a bad action: none has moved."""
        packed = {group: pack([actions[env_id] for env_id in env_ids]) for group, env_ids in todo.items()}
        tasks = {g: [self._held(env_id).episode.task_index for env_id in env_ids] for g, env_ids in todo.items()}
        if all(self._forms[group].covers(packed[group], tasks[group]) for group in todo):
            return {
                group: self._crew.call(group, 'step', env_ids, self._steps[group], finished, packed[group])
                for group, env_ids in todo.items()
            }
        checks = {group: self._crew.call(group, 'check', ids, packed[group]) for group, ids in todo.items()}
        steps = {
            group: self._crew.call(group, 'step', ids, self._steps[group], finished, None, after=checks.values())
            for group, ids in todo.items()
        }
        for group, answer in self._crew.gather(checks).items():
            if isinstance(answer, Exception) and not isinstance(answer, WorkerDied):
                raise answer
            if answer is True:
                self._forms[group].add(packed[group], tasks[group])
        return steps

    def _plan_and_start(self, env_ids: Sequence[int], started: Mapping[int, RemoteEpisode]) -> None:
        """Have workers start episodes; envs that are to start none are left without one."""
        todo = self._by_group(env_ids)
        while todo:
            self._check_retries(started[i] for ids in todo.values() for i in ids if i in started)
            plans: dict[int, Call] = {}
            for group, ids in todo.items():
                assignments = [self._assignment(group, i, started[i].episode) for i in ids if i in started]
                plans[group] = self._crew.call(group, 'plan', assignments, self.queue.seed)
            starts = {g: self._crew.call(g, 'start', ids, after=plans.values()) for g, ids in todo.items()}
            again: dict[int, list[int]] = {}
            errors: list[Exception] = []
            for group, outcome in self._crew.gather(starts).items():
                if isinstance(outcome, WorkerDied):
                    again[group] = todo[group]
                    if outcome.group == group:
                        self._deaths.update(started[i].episode.id for i in todo[group] if i in started)
                elif isinstance(outcome, Exception):
                    errors.append(outcome)
                else:
                    self._note_started(todo[group], outcome, started)
            if errors:
                self._undo(env_ids, plans)
                raise errors[0]
            todo = again

    def _note_started(self, env_ids: Sequence[int], reply: Reply, started: Mapping[int, RemoteEpisode]) -> None:
        for env_id, obs in zip(env_ids, unpack(reply.values), strict=True):
            if env_id in started:
                env = started[env_id]
                info = {'episode_id': env.episode.id, 'task_name': env.episode.task_name, 'step': 0}
                env.last = (obs, 0.0, False, False, info)
                DataHub.clear(env.episode.task_name)  # what was reported of another run of it
            self.envs[env_id] = started.get(env_id)
        self._record(reply.results)

    def _undo(self, env_ids: Sequence[int], plans: Mapping[int, Call]) -> None:
        """After a mistake. One that was found while planning changed nothing; else the envs are without an episode."""
        outcomes = self._crew.gather(plans)
        if not any(isinstance(outcome, Exception) for outcome in outcomes.values()):
            self._clear(env_ids)

    def _clear(self, env_ids: Sequence[int]) -> None:
        """Leave envs without an episode."""
        calls = {group: self._crew.call(group, 'clear', ids) for group, ids in self._by_group(env_ids).items()}
        self._crew.gather(calls)
        for env_id in env_ids:
            self.envs[env_id] = None

    def _assignment(self, group: int, env_id: int, episode: Episode) -> Assignment:
        known = self._known[group]
        config = None if episode.task_index in known else self._crew.pickled(episode.snapshot())
        known.add(episode.task_index)
        return Assignment(env_id, episode.id, episode.task_index, config, self._joints.of(env_id))

    def _absorb(self, env_ids: Sequence[int], reply: Reply) -> dict[int, StepResult]:
        """Take in what came of a step."""
        outcomes: dict[int, StepResult] = dict(zip(env_ids, unpack(reply.values), strict=True))
        for env_id, result in outcomes.items():
            env = self._held(env_id)
            env.ended = bool(result[2] or result[3])
            env.last = copy.deepcopy(result) if env.ended else result  # to be repeated, whatever the caller does
        self._record(reply.results)
        return outcomes

    def _record(self, results: Iterable[dict[str, Any]]) -> None:
        for result in results:
            self.results.write(result)

    def _outcome(self, env_id: int, outcomes: Mapping[int, StepResult]) -> StepResult:
        """What an env reports after a step."""
        env = self.envs[env_id]
        if env_id in outcomes:
            return outcomes[env_id]
        if env is None:
            return EMPTY_RESULT
        if env.lost is not None and not env.ended:
            info = {**(env.last[4] or {}), 'metrics': {}, 'error': env.lost}
            env.ended = True
            env.last = (env.last[0], 0.0, False, True, {**info, 'requeued': True} if env.requeued else info)
        return repeated(env.last)

    def _lose(self, group: int, reason: str) -> None:
        """A worker has died: its running episodes go back to the queue."""
        self._known[group] = set()
        self._forms[group] = SignatureCache()
        back: list[Episode] = []
        for env_id in self._active(group):
            env = self._held(env_id)
            if env.replaced:
                env.lost = reason
                continue
            self._deaths[env.episode.id] += 1
            if self._deaths[env.episode.id] > self._retries:
                env.lost = f'{reason}; so did {self._retries} workers before that ran this episode: it is given up'
                self.results.write(env.given_up(env_id))
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

    def _ask_all(
        self, method: str, arguments: Callable[[int], tuple[Any, ...]], groups: Iterable[int] | None = None
    ) -> dict[int, Any]:
        """Call a method of all workers whose envs run (or of some workers); those that die are not in the answer."""
        asked = [g for g in range(len(self.groups)) if self._active(g)] if groups is None else groups
        calls = {group: self._crew.call(group, method, *arguments(group)) for group in asked}
        answers = self._crew.gather(calls)
        for answer in answers.values():
            if isinstance(answer, Exception) and not isinstance(answer, WorkerDied):
                raise answer
        return {group: answer for group, answer in answers.items() if not isinstance(answer, WorkerDied)}

    def _active(self, group: int) -> list[int]:
        """The envs of a group whose episode goes on in their worker."""
        return [
            env_id
            for env_id in self.groups[group]
            if (env := self.envs[env_id]) is not None and not env.ended and env.lost is None
        ]

    def _held(self, env_id: int) -> RemoteEpisode:
        env = self.envs[env_id]
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
        return [env.episode.task_name for env in self.envs if env and env.episode.task_name in reported]

    def _group_of_camera(self, camera: str | tuple[Any, Any] | None) -> int:
        if not isinstance(camera, str):
            return 0
        number = camera.removeprefix('/World/env_').partition('/')[0]
        return int(number) // len(self.groups[0]) if number.isdecimal() and int(number) < self.env_num else 0
