"""Array runner: the envs of the array API in this process, batched from end to end.

`ArrayRunner` is what all array APIs share: it commands robots by arrays and evaluates terms. It has no autoreset mode:
envs that ended stand still until they are reset. Nothing in a step loops over envs, except for tasks that end
themselves (`BaseTask.ends_itself`). Its calls are for one thread at a time: `VectorEnv` guards them.

Arrays are those of the world, `arrays`: of numpy, or tensors (`device_array_runner.py`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config, TaskCfg
from internutopia.config.learning import LearningCfg
from internutopia.core.episodes import EpisodeQueue
from internutopia.core.episodes.results import Results
from internutopia.core.robot.batched import BatchedRobot
from internutopia.core.robot.controller import BaseController
from internutopia.core.runner.grid import with_spacing
from internutopia.core.runner.interfaces import Failures
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.task.task import BaseTask
from internutopia.engines.env_selection import EnvSelection, select_envs
from internutopia.rl.action_format import command, offset_and_scale
from internutopia.rl.checks import checked_batch, checked_controller, checked_learning, combined_seed
from internutopia.rl.elevation import ElevationMap
from internutopia.rl.env_random import EnvRandom
from internutopia.rl.faults import Faults
from internutopia.rl.managers import (
    CommandManager,
    CurriculumManager,
    EpisodeArrays,
    Event,
    MetricManager,
    RandomizationManager,
    RewardManager,
    StepOutcome,
    TerminationManager,
    evaluate_step,
)
from internutopia.rl.observation_groups import Observations, each_group, where_envs
from internutopia.rl.observer import Observer
from internutopia.rl.state import RobotState
from internutopia.util.arrays import masked_assign, to_host

if TYPE_CHECKING:
    from internutopia.rl.compiled.step import CompiledStep

Bools = NDArray[np.bool_]
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class EnvShare:
    """The envs of a worker: those of a larger run whose episodes and results are known elsewhere.

    Attributes:
        queue: gives the episodes that were assigned to these envs.
        results: of the episodes that ended here.
        origins: where these envs stand `(n, 3)` [m].
    """

    queue: EpisodeQueue
    results: Results
    origins: NDArray[np.float64]


class ArrayRunner:
    """`config.env_num` envs with one robot each as the learner.

    Args:
        config: what to run, in this process; every task's robot must be built and configured alike (poses aside).
        learning: what is learned; None takes that of the tasks, which must agree.
        share: the envs, if these are some of the envs of a run; None means all.
        leader: the same envs with another robot as the learner, which has the runner; None for these themselves. What
            is random of this robot is the stream of this number.
    """

    device_arrays = False  # whether arrays are tensors on the engine's device

    def __init__(
        self,
        config: Config,
        learning: LearningCfg | None = None,
        share: EnvShare | None = None,
        leader: tuple[ArrayRunner, int] | None = None,
    ):
        # there was no array API in 2.x: the switch, which a process may set for its scripts, does not change this one
        self.config = config = with_spacing(config.model_copy(update={'compat': '3.x'}))
        self.learning = checked_learning(config, learning)
        self.env_num = config.env_num
        self._stream = np.uint64(0 if leader is None else leader[1])
        if leader is not None:
            self.queue, self.runner = leader[0].queue, leader[0].runner
        elif share is None:
            self.queue = EpisodeQueue(tasks_of_episodes(config), config.episode_order, config.seed)
            self.runner = SimulatorRunner(config, self.queue, device_arrays=self.device_arrays)
        else:
            self.queue = share.queue
            self.runner = SimulatorRunner(config, share.queue, share.results, origins=share.origins)
        self.action_repeat = self.learning.action.repeat
        self.running: Bools = self.runner.running
        self.arrays = arrays = self.runner.world.arrays
        self.episode_ids: NDArray[np.intp] = arrays.zeros(self.env_num, 'int64') - 1
        self.returns: NDArray[np.float64] = arrays.zeros(self.env_num, 'float64')
        self._none: Bools = arrays.zeros(self.env_num, 'bool')
        limits = arrays.zeros(self.env_num, 'int64') + _NEVER
        self._episodes = EpisodeArrays(self.running, limits, self.returns, self._none, self._none, ())
        self._task_ids: NDArray[np.intp] = arrays.zeros(self.env_num, 'int64')
        self._vacant: EnvSelection | None = self.select(np.ones(self.env_num, bool))  # None: no env, for good
        self._self_ending: set[int] = set()  # envs whose task may end itself
        self._batch: BatchedRobot | None = None
        self._events: Sequence[Event] = ()
        self._action_shape: tuple[int, ...] = ()
        self._scaled = self.learning.action.scale is not None
        self._rng: Any = arrays.random(config.seed) if arrays.on_device else EnvRandom(self.env_num)
        self._state: RobotState | None = None
        self._compiled: CompiledStep | None = None

    @property
    def step_dt(self) -> float:
        """Length of an env step [s]."""
        return self.runner.world.step_dt * self.learning.action.repeat

    @property
    def started(self) -> bool:
        """True if an episode was started."""
        return self._state is not None

    @property
    def state(self) -> RobotState:
        """The state of the robots; RuntimeError before the first reset."""
        if self._state is None:
            raise RuntimeError('reset the envs first')
        return self._state

    @property
    def controller(self) -> BaseController:
        """The controller that gets the actions, for all envs."""
        return self._controller

    def seed(self, seed: int | Sequence[int]) -> None:
        """Start everything random, endless orders of episodes and the curriculum anew."""
        self.queue.restart(combined_seed(seed))
        if self.arrays.on_device:
            self._rng = self.arrays.random(seed)
        if self._state is not None:
            self._state.rng = self._rng
            self._state.levels[:] = 0.0

    def select(self, mask: Bools) -> EnvSelection:
        """Return the envs of a mask of the host, bool `(n,)`."""
        return select_envs(self.runner.world, self.arrays.asarray(mask))

    def reset(self, envs: EnvSelection) -> None:
        """Start the next episodes in these envs; those that get none stop running."""
        self.on_reset(envs, self.runner.reset(envs.host_ids.tolist(), self.begin, shown=False))

    def on_reset(self, envs: EnvSelection, prepared: Collection[int]) -> None:
        """Note that these envs were reset, of which the `prepared` ones have an episode."""
        env_ids = envs.host_ids
        if len(prepared) < len(env_ids):
            where = self.arrays.asarray([i for i in env_ids.tolist() if i not in prepared], 'int64')
            self.episode_ids[where] = -1
            self._episodes.limits[where] = _NEVER
        self._vacant = select_envs(self.runner.world, self.episode_ids < 0)
        envs.put(self.returns, 0.0)
        if self._state is not None:
            self.observer.on_reset(envs)

    def step(self, actions: NDArray[np.float32], starting: EnvSelection | None = None) -> StepOutcome:
        """Apply actions `(n, k)` to the running envs, make a step, and evaluate it. Rows of other envs do not count.

        Envs of `starting` start their next episode when the others have moved, and see nothing of these actions.
        """
        runner = self.runner
        self.take(actions)
        with runner.stepping() as envs:
            failures = Failures(self._invalid_actions(envs) if self.device_arrays else None)
            healthy = envs if failures.mask is None else envs.without(failures.mask)
            for _ in range(self.action_repeat):
                self.command(healthy)
                healthy = runner.advance(healthy, failures)
            runner.count_step()
            try:
                outcome = self.evaluate(envs, failures)
                if outcome.ended.any:
                    self.finish(outcome.ended)
                    self._record(outcome)
            finally:  # an error in one term must not cost the results that are known
                runner.results.flush()
        if starting is not None and starting.any:
            self.reset(starting)
            if not self.arrays.on_device:  # there, observations are computed when they are read
                self.observer.observe_started(starting)
        return outcome

    def take(self, actions: NDArray[np.float32]) -> None:
        """Take the actions `(n, k)` of the next step; rows of envs that do not run do not count."""
        state, compiled = self.state, self._compiled
        if compiled is not None and compiled.commands:
            compiled.take(actions)
        else:
            masked_assign(state.last_actions, self.running, state.actions)
            masked_assign(state.actions, self.running, actions)

    def command(self, envs: EnvSelection) -> None:
        """Command the robots in these envs by the actions that were taken."""
        if self._compiled is not None and self._compiled.commands:
            self._compiled.command()
        else:
            with envs.masked_writes():
                command(self.state, self._controller, self._action_shape, self._scaled, envs)

    def begin(self, env_ids: Sequence[int]) -> None:
        """Start episodes in these envs: bind the robot to the terms, randomize, sample commands."""
        started = np.array(env_ids, np.intp)
        if not len(started):
            return
        tasks: dict[int, BaseTask] = {}
        numbers: list[tuple[int, int, int]] = []
        for env_id, slot in zip(env_ids, self.runner.slots(env_ids), strict=True):
            tasks[env_id], prepared = slot.task, slot.prepared
            episode, limit = prepared.episode, prepared.task_config.max_episode_steps
            numbers.append((episode.id, episode.task_index, _NEVER if limit is None else limit))
            leads = not self._stream  # and calls the task
            (self._self_ending.add if leads and slot.task.ends_itself else self._self_ending.discard)(env_id)
        columns, where = self.arrays.asarray(numbers, 'int64').T, self.arrays.asarray(started)
        self.episode_ids[where], self._task_ids[where], self._episodes.limits[where] = columns
        others = bool(self.running.sum() > len(tasks))
        self._batch = batch = checked_batch(tasks, self.learning.robot, self._batch if others else None)
        state = self._state or self._set_up(batch, env_ids[0])
        state.bind(batch.robot, env_ids[0])
        self._controller = batch.robot.own_controllers[self.learning.action.controller]
        if isinstance(self._rng, EnvRandom):
            self._rng.start(started, self.runner.world.noise_keys[started] + self._stream)
        mask = np.zeros(self.env_num, bool)
        mask[started] = True
        self._begin(self.select(mask))

    def _invalid_actions(self, envs: EnvSelection) -> Any:
        """Return the envs whose action cannot be applied, bool `(n,)`: those of a device; others were refused."""
        raise NotImplementedError

    def evaluate(self, envs: EnvSelection, failures: Failures) -> StepOutcome:
        """Compute rewards and ends of a step of these envs, and observe."""
        state, none = self.state, self._none
        state.changed()  # terms compute again what they need
        if not envs.any:
            terminated, truncated = self.arrays.zeros((2, self.env_num), 'bool')
            return StepOutcome(self.arrays.zeros(self.env_num), terminated, truncated, none, none, {}, envs, {})
        episodes, errors, on_device = self._episodes, failures.errors, self.arrays.on_device
        episodes.failed = none if failures.mask is None else failures.mask
        invalid, reasons = self.observer.take_invalid()
        if invalid is not None:
            episodes.failed = episodes.failed | invalid & self.running
            errors = {env_id: text for env_id, text in reasons.items() if self.running[env_id]} | errors
        episodes.done = self._ends_of_tasks(episodes.failed) if self._self_ending else none
        if self._compiled is not None:
            evaluation = self._compiled.evaluate()
        else:
            evaluation = evaluate_step(state, episodes, self.terminations, self.rewards)
        rewards, terminated, truncated, failed, unrewarded, expired = evaluation
        if on_device:
            self._faults.send([*self.rewards.device_faults(unrewarded), *self.observer.device_faults(invalid)])
        elif unrewarded is not None and unrewarded.any():
            errors = self._faults.named(unrewarded, self.rewards.fault) | errors
        assert self._batch is not None
        stuck = self._batch.robot.find_stuck()
        stuck = none if stuck is False else stuck & self.running & ~failed
        metrics = self.metrics.compute(failed) if self.learning.metrics else {}
        for mask, (_, happen) in zip(expired, self._events, strict=True):  # what was rewarded were the commands before
            if mask is not None and (on_device or mask.any()):
                happen(select_envs(self.runner.world, mask))
        if faults := self.observer.step(envs, failed):  # there are envs that fail after all
            rows, errors = list(faults), faults | errors
            self.returns[rows] -= rewards[rows]
            rewards[rows], truncated[rows], stuck[rows] = 0.0, False, False
            terminated[rows] = failed[rows] = True
        ended = select_envs(self.runner.world, terminated | truncated)
        return StepOutcome(rewards, terminated, truncated, failed, stuck, errors, ended, metrics)

    def finish(self, ended: EnvSelection) -> None:
        """Note that the episodes of these envs are over."""
        self.curriculum.update(ended)
        ended.put(self.running, False)

    def compute_observations(self) -> Observations:
        """Compute observations `(n, ...)`, the caller's own; zero for envs without an episode."""
        return each_group(self._copied, self.observer.observations())

    def compute_first_observations(self, envs: EnvSelection) -> Observations:
        """Compute observations `(m, ...)` of envs that have just started, without touching those of the others."""
        has_episode = envs.take(self.episode_ids) >= 0
        return each_group(lambda obs: where_envs(has_episode, obs), self.observer.first(envs))

    def last_observations(self) -> Observations:
        """Return a copy of the last observations `(n, ...)`."""
        return each_group(self._copied, self.observer.last())

    def compute_critic_observations(self) -> Observations:
        """Compute the observations of the critic `(n, dim)`: those of the policy, then the privileged ones.

        Of named groups all, as a dict. The same until the next step or reset. RuntimeError before the first reset.
        """
        if self._state is None:
            raise RuntimeError('reset the envs first')
        return each_group(self._copied, self.observer.critic_observations())

    def close(self) -> None:
        """Free everything."""
        self.runner.close()

    def _copied(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a copy of observations, zero in envs without an episode."""
        obs = self.arrays.xp.asarray(obs, copy=True)
        if self._vacant is not None and self._vacant.any:
            self._vacant.put(obs, 0.0)
        return obs

    def _set_up(self, batch: BatchedRobot, env_id: int) -> RobotState:
        """Make the terms, which depend on the robot; returns its state."""
        cfg = self.learning
        controller, self._action_shape = checked_controller(batch, cfg.action.controller)
        size = math.prod(self._action_shape)
        state = RobotState(self.runner.world, self.step_dt, self._rng, size, self.config.task_configs)
        state.steps, state.task_ids = self.runner.steps, self._task_ids
        state.bind(batch.robot, env_id)
        joints = controller.get_joint_subset()
        offset, scale = offset_and_scale(cfg.action, joints, size, to_host(state.home))
        state.action_offset[:], state.action_scale[:] = self.arrays.asarray(offset), self.arrays.asarray(scale)
        if cfg.elevation is not None:
            state.elevation = ElevationMap(self.runner.world, state.articulation.view, env_id, cfg.elevation)
        self._state = state
        self.commands = CommandManager(cfg.commands, state)
        self._faults = Faults(cfg.on_nan, state, self.episode_ids)
        self.observer = Observer(cfg, state, self.episode_ids, self._faults)
        watched = {name for term in cfg.curricula if (name := term.params.get('reward')) is not None}
        self.rewards = RewardManager(cfg.rewards, state, watched)
        self.terminations = TerminationManager(cfg.terminations, state)
        self.metrics = MetricManager(cfg.metrics, state)
        self.randomizations = RandomizationManager(cfg.randomizations, state)
        self.curriculum = CurriculumManager(cfg.curricula, state)
        self._events = *self.commands.events, *self.randomizations.events
        self._episodes.timers = [timer for timer, _ in self._events]
        if cfg.compiled:
            from internutopia.rl.compiled.step import compile_step

            observers = [(self.observer.policy, cfg.terms(False)), (self.observer.critic, cfg.terms(True))]
            self._compiled = compile_step(cfg, state, self._episodes, controller, self.rewards, observers)
            self.observer.compiled = None if self._compiled is None else self._compiled.observe
        return state

    def _begin(self, rows: EnvSelection) -> None:
        """Begin episodes: clear what is remembered, randomize, sample commands."""
        state = self.state
        for array in (state.steps, state.actions, state.last_actions, *state.episode_values.values()):
            rows.put(array, 0)
        if state.reward_sums:
            self.rewards.reset(rows)
        if self.learning.metrics:
            self.metrics.reset(rows)
        state.changed()
        self.randomizations.reset(rows)
        rows.put(state.start_positions, rows.take(state.base_position))
        self.commands.sample(rows)
        self.observer.reset(rows)

    def _ends_of_tasks(self, failed: Bools) -> Bools:
        """Return the envs whose task says that the episode is over, bool `(n,)`; not those that `failed`."""
        healthy = to_host(self.running & ~failed)
        done = np.zeros(self.env_num, bool)
        for env_id in sorted(self._self_ending):
            done[env_id] = healthy[env_id] and self.runner.slot(env_id).task.is_done()
        return self.arrays.asarray(done)

    def _record(self, outcome: StepOutcome) -> None:
        """Write the results of the episodes that are over."""
        columns = (self.state.steps, outcome.terminated, outcome.truncated)
        steps, terminated, truncated = (to_host(column) for column in columns)
        metrics = {name: to_host(values) for name, values in {'return': self.returns, **outcome.metrics}.items()}
        for env_id in outcome.ended.host_ids.tolist():
            self.runner.record(
                env_id,
                self.runner.slot(env_id).episode,
                int(steps[env_id]),
                bool(terminated[env_id]),
                bool(truncated[env_id]),
                {name: float(values[env_id]) for name, values in metrics.items()},
                outcome.errors.get(env_id),
            )


def tasks_of_episodes(config: Config) -> list[TaskCfg]:
    """Return the task configs of episodes, without what is learned: it is the same for all."""
    return [task.model_copy(update={'learning': None}) for task in config.task_configs]
