"""Local runner: the list API in this process, dicts in and out, env by env; or another runner, by the config."""

from __future__ import annotations

import copy
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from internutopia.config import Config, DistributedConfig, TaskCfg
from internutopia.core.episodes import EpisodeQueue
from internutopia.core.episodes.queue import is_finite
from internutopia.core.episodes.results import Results
from internutopia.core.observations import EMPTY_RESULT, Observation, ObservedRows, StepResult, original, repeat_result
from internutopia.core.robot.batched import BatchedActions, columns_of_actions, validate_actions
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.runner import snapshot
from internutopia.core.runner.env_group import EnvGroup, EnvSlot, group_envs
from internutopia.core.runner.interfaces import Action, EnvRunner, Failures, Image
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.runner.state import SceneState
from internutopia.core.task.reward import reward_of
from internutopia.engines.env_selection import select_envs
from internutopia.util.conventions import StepColumns, conventions_of
from internutopia.util.log import warn_once

Observations = dict[str, Any]


class LocalRunner:
    """Runs `config.env_num` envs; an `EnvRunner` for the list API.

    Args:
        config: what to run.
        queue: which episode runs next.
        results: gets the result of every ended episode; None: the results file of the config.

    Attributes:
        simulator: the step loop.
    """

    def __init__(self, config: Config, queue: EpisodeQueue, results: Results | None = None):
        self.simulator = SimulatorRunner(config, queue, results)
        self.env_num = config.env_num
        self.dt = self.simulator.dt
        self.groups: Sequence[range] = [range(config.env_num)]
        self.results = self.simulator.results
        self._conventions = conventions_of(config.compat)(config)
        self._action_filter = self._conventions.action_filter
        self._sent = BatchedActions([], [], [])  # for the next `step_wait`
        # envs, their groups, and those that are evaluated one by one: until an episode begins or ends
        self._grouped: tuple[list[int], list[EnvGroup], list[int]] = [], [], []

    @property
    def envs(self) -> Sequence[EnvSlot | None]:
        """The episode in each env, None for an env without one."""
        return self.simulator.envs

    @property
    def workers(self) -> None:
        """The envs are in this process."""

    @property
    def running(self) -> bool:
        """True if an episode is running in any env."""
        return bool(self.simulator.running.any())

    def reset(self, env_ids: Sequence[int]) -> tuple[list[Observations | None], list[TaskCfg | None]]:
        """Start the next episodes in these envs, in this order; None where the queue is exhausted."""
        prepared = self.simulator.reset(env_ids, self.begin)
        configs = [prepared[env_id].task_config if env_id in prepared else None for env_id in env_ids]
        return self.first_observations(env_ids), configs

    def first_observations(self, env_ids: Sequence[int]) -> list[Observations | None]:
        """Return the first observations of the episodes in these envs; None for envs without one."""
        observations = list(map(self.simulator.last[0].__getitem__, env_ids))
        for index, observation in enumerate(observations):
            if not isinstance(observation, Observation):
                observations[index] = original(observation)
        return observations

    def step(self, actions: Sequence[Action] | BatchedActions, env_ids: Sequence[int] | None = None) -> StepColumns:
        """Step every env that runs. ValueError or KeyError for a bad action, before anything has moved.

        Args:
            actions: one for each env, or what `check_actions` returned.
            env_ids: the envs whose results are read; None means all. Those that do not run repeat their last one.
        """
        simulator, failures = self.simulator, Failures()
        with simulator.stepping() as envs:
            running = envs.host_ids.tolist()
            if not isinstance(actions, BatchedActions):
                actions = self._validated(running, actions)
            actions.apply()
            healthy = simulator.advance(envs, failures)
            simulator.count_step()
            simulator.batches.observe(healthy.host_ids)
            results = self._evaluate(running, failures)
        if len(running) < self.env_num:
            for env_id in set(range(self.env_num) if env_ids is None else env_ids).difference(running):
                results[env_id] = self._repeat(env_id)
        observation, reward, terminated, truncated, info = columns = tuple(map(list, simulator.last))
        for env_id, result in results.items():
            for column, value in zip(columns, result, strict=True):
                column[env_id] = value
        return observation, reward, terminated, truncated, info

    def check_actions(self, actions: Mapping[int, Action]) -> BatchedActions:
        """Check the actions of running envs for a step to come; those of others are left out."""
        running = [i for i in self.simulator.active() if i in actions]
        with self.simulator.scenes.entered():
            return self._validated(running, actions)

    def check_stacked(self, env_ids: Sequence[int], actions: Any) -> BatchedActions | None:
        """Check actions that differ in numbers alone, as arrays; see `BatchedRobots.validate_columns`.

        None if `check_actions` has to check them one by one.
        """
        simulator = self.simulator
        one_by_one = simulator.watchers or simulator.overrides or self._action_filter or not isinstance(actions, dict)
        if one_by_one or not simulator.running[env_ids].all():
            return None
        with simulator.scenes.entered():
            return simulator.batches.validate_columns(list(env_ids), actions)

    def step_async(self, group: int, actions: Mapping[int, Action]) -> None:
        """Check actions for the next step, which `step_wait` makes; there is one group."""
        self._sent = self.check_actions(actions)

    def poll(self) -> list[int]:
        """Return the groups whose step is ready."""
        return [0]

    def step_wait(self, group: int) -> list[StepResult]:
        """Make the step."""
        return list(map(StepResult, *self.step(self._sent)))

    def get_obs(self) -> list[Observations | None]:
        """Return the current observation of every env with an episode, the last one where the episode has ended."""
        simulator = self.simulator
        with simulator.scenes.entered():
            simulator.world.frame_due = True
            simulator.batches.observe(np.array(simulator.active(), np.intp))
            return [None if slot is None else self._current_observation(slot) for slot in self.envs]

    def warm_up(self, steps: int, physics: bool) -> None:
        """Advance physics without commands; episodes do not count these steps."""
        simulator = self.simulator
        with simulator.scenes.entered():
            for _ in range(steps if physics else 0):
                failures = Failures()
                simulator.advance(select_envs(simulator.world, simulator.running), failures, commanded=False)
                if failed := sorted(failures.errors):
                    simulator.steps[failed] += 1  # the step that they failed in
                    self._evaluate(failed, failures)
            simulator.world.frame_due = True

    def render(self, camera: str | tuple[Any, Any] | None, size: tuple[int, int]) -> Image:
        """Render all envs that hold an episode."""
        return self.simulator.render(camera, size)

    def get_state(self, env_ids: Sequence[int]) -> SceneState:
        """Return the state of envs. ValueError for one without an episode."""
        return snapshot.get_state(self.simulator, env_ids)

    def set_state(self, state: SceneState, env_ids: Sequence[int] | None) -> None:
        """Put envs into a state. ValueError if it does not fit: nothing has changed."""
        snapshot.set_state(self.simulator, state, env_ids)

    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        """Return the action space of a controller in an env with an episode; None if it has none or does not exist."""
        try:
            return self.simulator.slot(env_id).task.robots[robot].get_controllers()[controller].action_space()
        except (KeyError, NotImplementedError):
            return None

    def watch(self, begin: Callable[[SimulatorRunner], Callable[[], None]]) -> Callable[[], None]:
        """Attach a step watcher; returns a function that detaches it."""
        return begin(self.simulator)

    def close(self) -> None:
        """Free everything."""
        self.simulator.close()

    def begin(self, env_ids: Sequence[int]) -> None:
        """Observe envs whose episodes begin."""
        self._grouped = [], [], []
        self.simulator.batches.observe(np.array(env_ids, np.intp))
        for slot in self.simulator.slots(env_ids):
            slot.find_hooks()
            obs = self._observation(slot)
            for name, robot in slot.task.robots.items():
                for sensor in robot.sensors.values():
                    if sensor.renders and name in obs:
                        obs[name]['render'] = True  # what cameras show is of this episode
            slot.last = StepResult(obs, 0.0, False, False, {**slot.labels, 'step': 0})

    def _evaluate(self, env_ids: list[int], failures: Failures) -> dict[int, StepResult]:
        """Write the results of these envs to `simulator.last` and record the episodes that end.

        Returns those results that differ from what is written, by env id.
        """
        simulator, results, ended = self.simulator, dict[int, StepResult](), list[int]()
        healthy = [i for i in env_ids if i not in failures.errors] if failures.errors else env_ids
        if self._grouped[0] != healthy:
            self._grouped = healthy, *group_envs(simulator.slots(healthy))
        _, groups, single = self._grouped
        stuck = simulator.batches.find_stuck()
        mistakes: list[Exception] = []  # those in one env's class must not cost the results of others
        try:
            for group in groups:
                frame_due, metrics_see_end = simulator.world.frame_due, self._conventions.metrics_see_end
                try:
                    ended += group.evaluate(simulator.last, simulator.steps, frame_due, metrics_see_end)
                except Exception as mistake:
                    mistakes.append(mistake)
            if single or failures.errors or ended or stuck:
                for i in sorted({*single, *failures.errors, *ended, *stuck} & set(env_ids)):
                    slot, error, robots = simulator.slot(i), failures.errors.get(i), stuck.get(i, [])
                    alone = slot.kind is None or error is not None
                    try:
                        result = self._result(slot, error, robots) if alone else slot.last
                        results[i] = self._finish(slot, result, robots, error)
                    except Exception as mistake:
                        mistakes.append(mistake)
        finally:
            simulator.results.flush()
        if mistakes:
            raise mistakes[0]
        return results

    def _validated(self, env_ids: Sequence[int], actions: Any) -> BatchedActions:
        """Return checked actions of envs. ValueError or KeyError for a bad one; nothing is commanded yet."""
        simulator, given = self.simulator, dict[int, tuple[Action, Mapping[str, BaseRobot]]]()
        if simulator.overrides:
            actions = {i: self._overridden(i, actions[i]) for i in env_ids}
        simulator.actions = actions
        if (
            self._action_filter is None
            and (columns := columns_of_actions(list(map(actions.__getitem__, env_ids)))) is not None
        ):
            validated = simulator.batches.validate_columns(list(env_ids), columns)
            if validated is not None:
                return validated
        for env_id, slot in zip(env_ids, simulator.slots(env_ids), strict=True):
            given[env_id] = actions[env_id], slot.task.robots
        return validate_actions(given if self._action_filter is None else self._action_filter(given))

    def _overridden(self, env_id: int, action: Any) -> Any:
        """Return the action of an env with its overrides; one that is invalid is returned unchanged."""
        overrides = self.simulator.overrides
        if env_id not in overrides or not isinstance(action, Mapping | None):
            return action
        return {**(action or {}), **overrides[env_id]}

    def _result(self, slot: EnvSlot, error: str | None, stuck: list[str]) -> StepResult:
        """Return the result of an env that has failed, or in which code of this env is called."""
        step = slot.step
        reward, terminated, truncated = 0.0, False, step >= slot.limit
        if error is None:
            try:  # in the order that tasks rely on
                obs, task = self._observation(slot), slot.task
                terminated = bool(task.is_done())
                if task.metrics and (self._conventions.metrics_see_end or not (terminated or truncated)):
                    for metric in task.metrics.values():
                        metric.update(obs)
                reward = 0.0 if task.reward is None else reward_of(task.reward)
            except Exception as mistake:
                mistake.add_note(f'in env {slot.env_id}, step {step} of episode {slot.episode.id}')
                raise
        else:  # the state is lost: the last observation stands
            obs = original(slot.last.observation)
            truncated = self._conventions.fails_as_truncated
            terminated = not truncated
        if slot.kind is None:  # `stuck` has those whose controllers are those of batches
            stuck += [name for name, robot in slot.task.robots.items() if robot.find_stuck()]
        return StepResult(obs, reward, terminated, truncated, {**slot.labels, 'step': step})

    def _finish(self, slot: EnvSlot, result: StepResult, stuck: list[str], error: str | None) -> StepResult:
        """Add what is rare to the result of an env, and record its episode if that has ended."""
        _, _, terminated, truncated, info = result
        assert info is not None
        if stuck:
            info['stuck'] = stuck
        if terminated or truncated:
            self.simulator.running[slot.env_id] = False  # until it is reset, also if a metric fails
            try:
                info['metrics'] = slot.task.calculate_metrics()
            except Exception as mistake:
                mistake.add_note(f'in env {slot.env_id}, at the end of episode {slot.episode.id}')
                raise
            for name in [name for name, value in info['metrics'].items() if not is_finite(value)]:
                warn_once('metric %r returned numbers that are not finite: results contain null instead', name)
            if error is not None:
                info['failed'], info['error'] = True, error
            ends = bool(terminated), bool(truncated), info['metrics'], error
            self.simulator.record(slot.env_id, slot.episode, info['step'], *ends)
            slot.last = copy.deepcopy(result)  # to be repeated, whatever the caller does with it
        else:
            kept = result.observation
            kept = kept if isinstance(kept, Observation) else original(kept)  # its user may change it
            slot.last = result._replace(observation=kept)
        return result

    def _current_observation(self, slot: EnvSlot) -> Observations | None:
        return original(slot.last.observation) if slot.ended else self._observation(slot)

    def _observation(self, slot: EnvSlot) -> Observations:
        if slot.batches is not None:
            rows: dict[str, ObservedRows] = {}
            for name, batch in slot.batches:
                rows[name] = batch.observed(slot.env_id)
            return Observation.of_envs(rows, [slot.env_id], self.simulator.world.frame_due)[0]
        obs = slot.task.get_observations()
        for robot_obs in obs.values():
            robot_obs['render'] = self.simulator.world.frame_due  # a task may have asked for a frame
        return obs

    def _repeat(self, env_id: int) -> StepResult:
        """Return the result of an env that does not run: empty, or its last one again."""
        slot = self.envs[env_id]
        return EMPTY_RESULT if slot is None else repeat_result(slot.last)


def create_runner(config: Config, queue: EpisodeQueue) -> EnvRunner:
    """Create the runner of a config.

    A distributed one is made by the function that an entry point of the group `internutopia.runners` names; it is
    called like the `type` of the distribution config, and the function gets config, distribution config and queue.

    ValueError for a kind of distribution that is not there, ImportError if its library is missing.
    """
    distribution = config.distribution_config if isinstance(config, DistributedConfig) else None
    if distribution is None:
        return LocalRunner(config, queue)
    makers = {maker.name: maker for maker in importlib.metadata.entry_points(group='internutopia.runners')}
    if distribution.type not in makers:
        expected = ' or '.join(map(repr, sorted(makers))) or 'a package that announces one to be installed'
        raise ValueError(f'distribution_config.type={distribution.type!r}: expected {expected}')
    return makers[distribution.type].load()(config, distribution, queue)
