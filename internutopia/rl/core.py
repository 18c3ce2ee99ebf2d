"""The learner's view of the envs, batched from end to end: act, step, judge, observe, restart.

`LearningCore` is what all array front doors share. It knows no autoreset mode: envs that ended stand still until
`restart`. Nothing in a step loops over envs, except for tasks that end themselves (`BaseTask.ends_itself`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from internutopia.core.config import Config, DistributedConfig
from internutopia.core.config.learning import LearningCfg
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.fleet import Fleet
from internutopia.core.runner import SimulatorRunner
from internutopia.core.task_config_manager import EpisodeQueue
from internutopia.core.util import did_you_mean
from internutopia.rl.managers import Commands, Curriculum, Observations, Randomizations, Rewards, Terminations
from internutopia.rl.state import RobotState

Bools = NDArray[np.bool_]


@dataclass
class StepOutcome:
    """One step of all envs; rows of envs that did not run are zero.

    `ended` are the ids of the envs whose episode is over.
    """

    rewards: NDArray[np.float32]
    terminated: Bools
    truncated: Bools
    errors: dict[int, str]
    ended: NDArray[np.intp]


class LearningCore:
    """`config.env_num` envs with one robot each as the learner.

    Args:
        config: what to run, in this process; every task's robot must be built and configured alike (poses aside).
        learning: what is learned; None takes that of the tasks, which must agree.
    """

    def __init__(self, config: Config, learning: LearningCfg | None = None):
        if isinstance(config, DistributedConfig) and config.distribution_config is not None:
            raise ValueError(
                'the array front doors step all envs in one process: use distribution_config=None, or vec_env.Env'
            )
        self.config = config
        self.learning = learning or _learning_of(config)
        self.env_num = config.env_num
        # every episode gets a copy of its config of its own: what is learned is the same for all and need not be in it
        tasks = [task.model_copy(update={'learning': None}) for task in config.task_configs]
        self.queue = EpisodeQueue(tasks, config.episode_order, config.seed)
        self.runner = SimulatorRunner(config, self.queue)
        self.running: Bools = np.zeros(self.env_num, bool)
        self.episode_ids: NDArray[np.intp] = np.full(self.env_num, -1, np.intp)
        self.returns: NDArray[np.float64] = np.zeros(self.env_num)
        self._running_ids: NDArray[np.intp] = np.flatnonzero(self.running)
        self._vacant: NDArray[np.intp] = np.flatnonzero(self.episode_ids < 0)
        self._critic_due: Bools = np.ones(self.env_num, bool)  # what the critic sees there is not looked up yet
        self._limits = np.full(self.env_num, np.iinfo(np.intp).max, np.intp)
        self._asked: set[int] = set()  # envs whose task may end itself
        self._fleet: Fleet | None = None
        self._action_shape: tuple[int, ...] = ()
        self._rng = np.random.default_rng(config.seed)
        self._state: RobotState | None = None

    @property
    def step_dt(self) -> float:
        """Length of an env step [s]."""
        return self.runner.world.step_dt * self.learning.action.repeat

    @property
    def state(self) -> RobotState:
        """The state of the robots; RuntimeError before the first restart."""
        if self._state is None:
            raise RuntimeError('reset the envs first')
        return self._state

    @property
    def controller(self) -> BaseController:
        """The controller that gets the actions, for all envs."""
        assert self._fleet is not None
        return self._fleet.robot.controllers[self.learning.action.controller]

    def seed(self, seed: int | Sequence[int]) -> None:
        """Start everything random, endless orders of episodes and the curriculum anew."""
        self._rng = np.random.default_rng(seed)
        self.queue.restart(seed if isinstance(seed, int) else int(np.random.SeedSequence(seed).generate_state(1)[0]))
        if self._state is not None:
            self._state.rng = self._rng
            self._state.levels[:] = 0.0

    def restart(self, env_ids: NDArray[np.intp]) -> None:
        """Start the next episodes in these envs; those that get none stop running."""
        ids = env_ids.tolist()
        _, tasks = self.runner.reset(ids, observe=False)
        got = np.array([task is not None for task in tasks], bool)
        self._run(env_ids, got)
        self._critic_due[env_ids] = True
        self.episode_ids[env_ids] = -1
        self.returns[env_ids] = 0.0
        for env_id, task_config in zip(ids, tasks, strict=True):
            env = self.runner.envs[env_id]
            if env is None or task_config is None:
                continue
            self.episode_ids[env_id] = env.episode.id
            limit = task_config.max_episode_steps
            self._limits[env_id] = np.iinfo(np.intp).max if limit is None else limit
            (self._asked.add if env.task.ends_itself else self._asked.discard)(env_id)
        self._vacant = np.flatnonzero(self.episode_ids < 0)
        started = env_ids[got]
        if len(started):
            self._bind(started)
            self._begin(started)

    def step(self, actions: NDArray[np.float32]) -> StepOutcome:
        """Apply actions `(n, k)` to the running envs, let time pass, and judge. Rows of other envs do not count."""
        state, env_ids = self.state, self._running_ids
        if not len(env_ids):
            nobody = np.zeros(self.env_num, bool)
            return StepOutcome(np.zeros(self.env_num, np.float32), nobody, nobody.copy(), {}, env_ids)
        rows = slice(None) if len(env_ids) == self.env_num else env_ids  # blocks are copied faster
        state.last_actions[rows] = state.actions[rows]
        state.actions[rows] = actions[rows]
        errors = self._advance(env_ids)
        state.steps[rows] += 1
        state.changed()
        healthy = self.running.copy()
        healthy[list(errors)] = False
        terminated, truncated = self.terminations.compute()
        truncated |= state.steps >= self._limits
        terminated &= healthy
        truncated &= healthy
        truncated[list(errors)] = True
        self._ask_tasks(terminated, healthy)
        rewards = np.where(healthy, self.rewards.compute(), np.float32(0.0))
        self.returns += rewards
        outcome = StepOutcome(rewards, terminated, truncated, errors, np.flatnonzero(terminated | truncated))
        self._end(outcome)
        self._critic_due[:] = True
        # only now: what was learned in this step was told the commands of before it
        self.commands.pass_time(self.running)
        self.randomizations.pass_time(self._running_ids)
        for observations in (self.observations, self.critic_observations):
            observations.pass_time(env_ids)
        return outcome

    def observe(self) -> NDArray[np.float32]:
        """Observations `(n, dim)`, the caller's own; zero for envs without an episode."""
        obs = self.observations.compute()
        obs[self._vacant] = 0.0
        return obs

    def observe_rows(self, env_ids: NDArray[np.intp]) -> NDArray[np.float32]:
        """Observations `(m, dim)` of envs that have just started, without touching those of the others."""
        obs = self.observations.first(env_ids)
        obs[self.episode_ids[env_ids] < 0] = 0.0
        return obs

    def observe_critic(self) -> NDArray[np.float32]:
        """What the critic sees `(n, dim)`: the observation and the privileged part behind it.

        The same until the next step or restart. RuntimeError before the first restart.
        """
        if self._state is None:
            raise RuntimeError('reset the envs first')
        if self._critic_due.all():
            self.critic_observations.compute()
        elif self._critic_due.any():
            self.critic_observations.first(np.flatnonzero(self._critic_due))
        self._critic_due[:] = False
        obs = np.concatenate([self.observations.last, self.critic_observations.last], axis=-1)
        obs[self._vacant] = 0.0
        return obs

    def close(self) -> None:
        """Free everything."""
        self.runner.close()

    def _advance(self, env_ids: NDArray[np.intp]) -> dict[int, str]:
        """Let the controller act and time pass, as often as an action is repeated; returns the envs that failed."""
        errors: dict[int, str] = {}
        for _ in range(self.learning.action.repeat):
            self._act(env_ids)
            failed = self.runner.world.step(env_ids)
            if failed:
                errors |= failed
                env_ids = env_ids[~np.isin(env_ids, list(failed))]
        return errors

    def _act(self, env_ids: NDArray[np.intp]) -> None:
        cfg, state = self.learning.action, self.state
        values = state.actions[env_ids]
        if cfg.scale is not None:
            values = state.action_offset + state.action_scale * values
        assert self._fleet is not None
        control = self.controller.action_to_control(values.reshape(-1, *self._action_shape), env_ids)
        self._fleet.robot.articulation.apply_action(control, env_ids)

    def _bind(self, started: NDArray[np.intp]) -> None:
        """Find the batched robot of the envs that just started and show it to the terms."""
        name = self.learning.robot
        fleets: dict[int, Fleet | None] = {}
        for env_id in started.tolist():
            env = self.runner.envs[env_id]
            assert env is not None
            robots = env.task.robots
            if not robots:
                raise ValueError(f'env {env_id}: the task has no robot to learn with')
            robot = robots.get(name) if name is not None else next(iter(robots.values()))
            if robot is None:
                raise ValueError(f'learning.robot: env {env_id} has no robot {name!r}; {did_you_mean(name, robots)}')
            fleets[env_id] = robot.fleet
        distinct = {id(fleet): fleet for fleet in fleets.values()}
        waiting = self.running.copy()
        waiting[started] = False
        if waiting.any() and self._fleet is not None:
            distinct[id(self._fleet)] = self._fleet
        fleet = next(iter(distinct.values()))
        if fleet is None:
            raise ValueError('array front doors need a batched robot class (`batched = True` in its own body)')
        if len(distinct) > 1:
            raise ValueError(
                'array front doors need one robot model and configuration for all tasks (only poses may differ): '
                f'robot {fleet.name!r} differs between episodes'
            )
        self._fleet = fleet
        if self._state is None:
            self._set_up(fleet, int(started[0]))
        self.state.bind(fleet.robot, int(started[0]))

    def _set_up(self, fleet: Fleet, env_id: int) -> None:
        """Make the terms; they need to know the robot."""
        controllers = fleet.robot.controllers
        name = self.learning.action.controller
        if name not in controllers:
            raise ValueError(
                f'learning.action.controller: robot {fleet.name!r} has no batched controller {name!r}; '
                f'{did_you_mean(name, controllers)}'
            )
        shape = controllers[name].action_space().shape
        if shape is None:
            raise ValueError(f'learning.action.controller: the actions of {name!r} are no array')
        self._action_shape = shape
        state = RobotState(self.runner.world, self.step_dt, self._rng, int(np.prod(shape)))
        state.bind(fleet.robot, env_id)
        cfg = self.learning
        subset = controllers[name].get_joint_subset()
        if cfg.action.offset == 'home':
            if subset is None:
                raise ValueError(f"learning.action.offset='home': controller {name!r} drives no joints by position")
            state.action_offset[:] = state.home[subset.joint_indices]
        elif isinstance(cfg.action.offset, float | int):
            state.action_offset[:] = cfg.action.offset
        if isinstance(cfg.action.scale, dict):
            state.action_scale[:] = _by_joint(cfg.action.scale, subset.joint_names if subset else [], name)
        elif cfg.action.scale is not None:
            state.action_scale[:] = cfg.action.scale
        self._state = state
        self.commands = Commands(cfg.commands, state)
        self.observations = Observations(cfg.observations, state)
        self.critic_observations = Observations(cfg.critic_observations, state)
        self.rewards = Rewards(cfg.rewards, state)
        self.terminations = Terminations(cfg.terminations, state)
        self.randomizations = Randomizations(cfg.randomizations, state)
        self.curriculum = Curriculum(cfg.curricula, state)

    def _begin(self, env_ids: NDArray[np.intp]) -> None:
        """First moments of episodes: clear what is remembered, randomize, draw commands."""
        state = self.state
        state.steps[env_ids] = 0
        state.actions[env_ids] = state.last_actions[env_ids] = 0.0
        self.randomizations.start(env_ids)
        state.changed()
        self.commands.draw(env_ids)
        for observations in (self.observations, self.critic_observations):
            observations.start(env_ids)

    def _ask_tasks(self, terminated: Bools, healthy: Bools) -> None:
        for env_id in sorted(self._asked):
            if healthy[env_id]:
                env = self.runner.envs[env_id]
                assert env is not None
                terminated[env_id] |= bool(env.task.is_done())

    def _end(self, outcome: StepOutcome) -> None:
        """Record the episodes that are over and stop their envs."""
        if not len(outcome.ended):
            return
        self.curriculum.update(outcome.ended)
        for env_id in outcome.ended.tolist():
            self.runner.end_episode(
                env_id,
                int(self.state.steps[env_id]),
                bool(outcome.terminated[env_id]),
                bool(outcome.truncated[env_id]),
                {'return': self.returns[env_id]},
                outcome.errors.get(env_id),
            )
        self.runner.results.flush()
        self._run(outcome.ended, False)

    def _run(self, env_ids: NDArray[np.intp], running: Bools | bool) -> None:
        self.running[env_ids] = running
        self._running_ids = np.flatnonzero(self.running)


def _by_joint(scale: Mapping[str, float], joints: Sequence[str], controller: str) -> list[float]:
    """One factor for each joint of a controller. ValueError naming a joint that has none, or is none of its."""
    for name in scale:
        if name not in joints:
            hint = did_you_mean(name, joints)
            raise ValueError(f'learning.action.scale: controller {controller!r} drives no joint {name!r}; {hint}')
    for name in joints:
        if name not in scale:
            raise ValueError(f'learning.action.scale has no factor for joint {name!r} of controller {controller!r}')
    return [scale[name] for name in joints]


def _learning_of(config: Config) -> LearningCfg:
    first = config.task_configs[0].learning
    if first is None:
        raise ValueError('task_configs[0].learning is missing: array front doors need to know what is learned')
    for index, task in enumerate(config.task_configs):
        if task.learning is not first and task.learning != first:
            raise ValueError(f'task_configs[{index}].learning differs from that of task_configs[0]: all must be alike')
    return first
