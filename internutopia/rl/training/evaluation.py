"""How good a policy is: one episode in each of many envs, all at once.

    from internutopia.rl.training.evaluation import evaluate

    result = evaluate(policy, config)  # policy: observations (n, dim) -> actions (n, k)
    print(result.mean_return, result.tracking)

Tasks with a velocity command are run under test conditions (`walking_test`), any other task as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.config import Config
from internutopia.core.config.learning import CommandTermCfg, LearningCfg, RandomizationTermCfg
from internutopia.rl.state import RobotState
from internutopia.rl.training.loading import ActFn, started, step_length
from internutopia.rl.vector_env import VectorEnv

COMMAND_TIME = 5.0  # s, until the next command of a test
TEST_DURATION = 20.0  # s
START_TERMS = ('base_pose',)  # randomizations that a test keeps: they say where a robot starts


@dataclass(frozen=True)
class Tracking:
    """How well commanded velocities were followed: means over envs and time.

    Errors are distances between command and velocity of the base, in its frame. The base of a walking robot sways with
    every step: `velocity_error` and `yaw_rate_error` compare the mean velocity of the last gait period, `_unaveraged`
    the velocity of the moment. The time in which a robot follows a change of the command counts.
    """

    velocity_error: float
    """Planar, gait-averaged [m/s]."""
    velocity_error_unaveraged: float
    """Planar [m/s]."""
    yaw_rate_error: float
    """Gait-averaged [rad/s]."""
    yaw_rate_error_unaveraged: float
    """[rad/s]"""
    gait_period: float
    """What velocities are averaged over [s]; one step where the task has no gait."""


@dataclass(frozen=True)
class Evaluation:
    """Means over one episode in each env."""

    episodes: int
    seconds: float
    """Longest duration of an episode [s]."""
    mean_return: float
    mean_length: float
    """[steps]"""
    terminated: float
    """Share of the episodes that ended before their time: fallen, say, or having reached a goal."""
    failed: float
    """Share of the episodes in which the simulation diverged."""
    tracking: Tracking | None = None
    """Of tasks with a velocity command."""

    @property
    def survived(self) -> float:
        """Share of the episodes that lasted for their time."""
        return 1.0 - self.terminated - self.failed


def evaluate(
    policy: ActFn,
    config: Config,
    *,
    seconds: float | None = None,
    push: float = 0.5,
    push_every: float = 4.0,
    seed: int = 0,
    on_step: Callable[[int, int], None] = lambda step, steps: None,
) -> Evaluation:
    """Run one episode in each env.

    Args:
        policy: observations `(n, dim)` to actions `(n, k)`.
        config: envs of a learning task; it stays as it is.
        seconds: duration of an episode [s]; None means 20 s for tasks with a velocity command, else the task's own.
        push: change of the base's velocity by a push, in a random direction [m/s]. Only with a velocity command.
        push_every: time between two pushes [s].
        seed: of everything random.
        on_step: called after each step with its number and the largest number.

    Raises:
        ValueError: the task has no `learning`, or the policy does not fit it.
    """
    learning = config.task_configs[0].learning
    if learning is None:
        raise ValueError('task_configs[0].learning is missing: it says what the policy sees and does')
    command = velocity_command(learning)
    step_dt = step_length(config)
    if seconds is None and command is not None:
        seconds = TEST_DURATION
    limit = config.task_configs[0].max_episode_steps or round(TEST_DURATION / step_dt)
    steps = limit if seconds is None else max(round(seconds / step_dt), 1)
    if command is not None:
        learning = walking_test(learning)
    envs = VectorEnv(_once(config, steps, seed), learning)
    try:
        pusher = _Pusher(push, max(round(push_every / step_dt), 1), seed) if command is not None else None
        tracker = _Tracker(envs.num_envs, gait_period(learning), step_dt) if command is not None else None
        return _run(policy, envs, steps, command, tracker, pusher, on_step)
    finally:
        envs.close()


def velocity_command(learning: LearningCfg) -> str | None:
    """Name of the velocity command, None if there is none."""
    return next((name for name, cfg in learning.commands.items() if cfg.term == 'velocity'), None)


def gait_period(learning: LearningCfg) -> float:
    """Period of the gait clock that a policy sees or is paid for [s]; 0 if there is none."""
    terms = (*learning.observations, *learning.rewards)
    return float(next((cfg.params['period'] for cfg in terms if 'period' in cfg.params), 0.0))


def walking_test(learning: LearningCfg, fixed: tuple[float, float, float] | None = None) -> LearningCfg:
    """A velocity task under test conditions.

    Commands are drawn from the whole range that was trained, uniformly, every 5 s, or are `fixed` (forward, lateral
    [m/s], yaw rate [rad/s]). Sensors have no noise and no delay, and nothing is randomized but where robots start.
    """
    name = velocity_command(learning)
    assert name is not None
    command = learning.commands[name]
    if fixed is None:
        every_command = command.params | {'standing': 0.0, 'turning': 0.0, 'by_level': False}
        command = command.update(params=every_command, resample_time=COMMAND_TIME)
    else:
        command = CommandTermCfg(term='uniform', params={'low': list(fixed), 'high': list(fixed)})
    starts: list[RandomizationTermCfg] = [cfg for cfg in learning.randomizations if cfg.term in START_TERMS]
    return learning.update(
        commands=learning.commands | {name: command},
        observations=[cfg.update(noise=0.0, delay=0) for cfg in learning.observations],
        randomizations=starts,
        curricula=[],
    )


def _once(config: Config, steps: int, seed: int) -> Config:
    """One episode for each env."""
    tasks = [task.model_copy(update={'max_episode_steps': steps}) for task in config.task_configs]
    changes: dict[str, Any] = {
        'task_configs': [tasks[i % len(tasks)] for i in range(config.env_num)],
        'episode_order': 'once',
        'metrics_save_path': None,
        'seed': seed,
    }
    return config.model_copy(update=changes)


def _run(
    policy: ActFn,
    envs: VectorEnv,
    steps: int,
    command: str | None,
    tracker: _Tracker | None,
    pusher: _Pusher | None,
    on_step: Callable[[int, int], None],
) -> Evaluation:
    n = envs.num_envs
    returns, lengths = np.zeros(n), np.zeros(n)
    ended, failed = np.zeros(n, bool), np.zeros(n, bool)
    obs = started(policy, envs)
    running = np.ones(n, bool)
    step = 0
    while running.any():
        state = envs.core.state
        commanded = None if command is None else state.command(command).copy()  # a step may draw the next one
        obs, rewards, terminated, truncated, info = envs.step(policy(obs))
        step += 1
        returns += np.where(running, rewards, 0.0)
        lengths += running
        failed |= running & info.get('_error', False)
        ended |= running & terminated
        if tracker is not None and commanded is not None:
            tracker.add(state, commanded, running & ~failed)
        running &= ~(terminated | truncated)
        if pusher is not None:
            pusher.add(state, np.flatnonzero(running), step)
        on_step(step, steps)
    return Evaluation(
        episodes=n,
        seconds=steps * envs.core.step_dt,
        mean_return=float(returns.mean()),
        mean_length=float(lengths.mean()),
        terminated=float(ended.mean()),
        failed=float(failed.mean()),
        tracking=None if tracker is None else tracker.result(),
    )


class _Tracker:
    """Adds up the errors of commanded velocities; all envs have started together."""

    def __init__(self, n: int, period: float, step_dt: float):
        self._window = max(round(period / step_dt), 1)
        self._step_dt = step_dt
        self._history = np.zeros((self._window, n, 3))  # forward, lateral, yaw
        self._count = 0
        self._sums = np.zeros(4)
        self._samples = 0

    def add(self, state: RobotState, command: NDArray[np.float32], rows: NDArray[np.bool_]) -> None:
        """A step was made, under these commands `(n, 3)`; `rows` bool `(n,)` are the envs that count."""
        velocity = np.column_stack([state.base_linear_velocity_b[:, :2], state.base_angular_velocity_b[:, 2]])
        self._history[self._count % self._window] = velocity
        self._count += 1
        mean = self._history[: self._count].mean(axis=0)
        errors = [
            value
            for each in (mean, velocity)
            for value in (np.linalg.norm((each - command)[rows, :2], axis=-1), np.abs((each - command)[rows, 2]))
        ]
        self._sums += np.sum(errors, axis=-1)
        self._samples += int(rows.sum())

    def result(self) -> Tracking:
        """The means."""
        velocity, yaw_rate, velocity_now, yaw_rate_now = (self._sums / max(self._samples, 1)).tolist()
        period = self._window * self._step_dt
        return Tracking(velocity, velocity_now, yaw_rate, yaw_rate_now, period)


class _Pusher:
    """Pushes all envs now and then."""

    def __init__(self, speed: float, every: int, seed: int):
        self._speed, self._every = speed, every
        self._rng = np.random.default_rng(seed)

    def add(self, state: RobotState, env_ids: NDArray[np.intp], step: int) -> None:
        """A step was made, and these envs go on."""
        if self._speed == 0.0 or step % self._every or not len(env_ids):
            return
        bearing = self._rng.uniform(-np.pi, np.pi, state.env_num)[env_ids]  # whoever has fallen: the others' stay
        velocity = state.articulation.get_linear_velocity()[env_ids]
        velocity[:, :2] += self._speed * np.column_stack([np.cos(bearing), np.sin(bearing)])
        state.articulation.set_linear_velocity(velocity, env_ids=env_ids)
        state.changed()
