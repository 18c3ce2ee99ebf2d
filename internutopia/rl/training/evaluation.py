"""Evaluation of a policy: one episode in each of many envs, all at once.

    from internutopia.rl.training.evaluation import evaluate

    result = evaluate(policy, config)  # policy: observations (n, dim) -> actions (n, k)
    print(result.mean_return, result.tracking)

Tasks with a velocity command are run under test conditions (`walking_test`), any other task as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from internutopia.config import Config
from internutopia.config.learning import CommandTermCfg, LearningCfg
from internutopia.config.robot import RobotCfg, SensorCfg
from internutopia.rl.state import RobotState
from internutopia.rl.training.gait_meter import CourseMeter, Gait, GaitMeter, OverlapMeter, Stillness
from internutopia.rl.training.loading import ActFn, Arrays, started, step_length, velocity_command
from internutopia.rl.vector_env import VectorEnv
from internutopia.util import log
from internutopia.util.arrays import ArrayMaker, to_host

COMMAND_TIME = 5.0  # s, until the next command of a test
TEST_DURATION = 20.0  # s
TestCommand = tuple[float, float, float] | CommandTermCfg | None
START_TERMS = ('base_pose', 'terrain_pose')  # randomizations that a test keeps: the start poses of a robot


@dataclass(frozen=True)
class Tracking:
    """Tracking of commanded velocities: means over envs and time.

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
    """Averaging time of velocities [s]; one step where the task has no gait."""


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
    """Share of the episodes that ended before their time: by a fall, for example, or at a goal."""
    failed: float
    """Share of the episodes in which the simulation diverged."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Means of the metrics of the task (`LearningCfg.metrics`), by name."""
    tracking: Tracking | None = None
    """Of tasks with a velocity command."""
    gait: Gait | None = None
    """Of these, if the robot's class names its feet."""
    heading_error: float | None = None
    """Mean absolute angle between the heading in the end and the commanded one [rad]; of robots with feet that are
    given one command."""
    still: Stillness | None = None
    """Of those that are commanded to stand, until the first push."""
    still_pushed: Stillness | None = None
    """Likewise, after pushes."""
    overlap: float | None = None
    """Share of the time in which links of a robot with feet overlap, whether its model lets them collide or not."""

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
    command: TestCommand = None,
    seed: int = 0,
    arrays: Arrays = 'numpy',
    on_step: Callable[[int, int], None] = lambda step, steps: None,
    beside: Callable[[VectorEnv], AbstractContextManager[Any]] = lambda envs: nullcontext(),
) -> Evaluation:
    """Run one episode in each env.

    Args:
        policy: observations `(n, dim)` to actions `(n, k)`.
        config: envs of a learning task; it stays as it is.
        seconds: duration of an episode [s]; None means 20 s for tasks with a velocity command, else the task's own.
        push: change of the base's velocity by a push, in a random direction [m/s]. Only with a velocity command.
        push_every: time between two pushes [s].
        command: the velocity that is commanded all the time (forward, lateral [m/s], yaw rate [rad/s]), e.g. zero for
            standing; a command term samples it; None means another one every 5 s.
        seed: of everything random.
        arrays: what the policy takes and gives: arrays of numpy, or torch tensors, on the device of the engine if that
            gives them. There no value is read before the end, so that every test takes its full time.
        on_step: called after each step with its number and the largest number.
        beside: entered with the envs before their reset, and left before they are closed, such as a recorder.

    Raises:
        ValueError: the task has no `learning`, or takes no velocity command, or the policy does not fit it.
    """
    learning, name = tested_learning(config, command)
    step_dt = step_length(config)
    if seconds is None and name is not None:
        seconds = TEST_DURATION
    limit = config.task_configs[0].max_episode_steps or round(TEST_DURATION / step_dt)
    steps = limit if seconds is None else max(round(seconds / step_dt), 1)
    on_device = arrays == 'torch' and config.simulator.has_tensors
    envs = VectorEnv(_test_config(config, steps, seed, on_device, name is not None), learning, arrays=arrays)
    with closing(envs), beside(envs):
        obs = started(policy, envs)
        test = None
        if name is not None:
            state, period = envs.core.state, gait_period(learning)
            maker, feet = state.arrays, state.robot.feet
            tracker = _Tracker(maker, envs.num_envs, period, step_dt)
            pusher = _Pusher(maker, push, max(round(push_every / step_dt), 1), seed)
            gait = GaitMeter(state, period) if feet else None
            course = CourseMeter(state, command) if feet and isinstance(command, tuple) else None
            overlap = OverlapMeter(state) if feet else None
            test = _Test(name, tracker, pusher, gait, course, overlap)
        return _run(policy, envs, obs, steps, test, on_step)


def gait_period(learning: LearningCfg) -> float:
    """Return the period of the gait clock in a policy's observations or rewards [s]; 0 if there is none."""
    terms = (*learning.terms(privileged=False), *learning.rewards)
    return float(next((cfg.params['period'] for cfg in terms if 'period' in cfg.params), 0.0))


def tested_learning(config: Config, command: TestCommand) -> tuple[LearningCfg, str | None]:
    """Return the learning config under test and the name of its velocity command: of a `walking_test`, if it has one.

    ValueError if the task has no `learning`, or no velocity command where one is given.
    """
    learning = config.task_configs[0].learning
    if learning is None:
        raise ValueError('task_configs[0].learning is missing: it defines observations and actions')
    name = velocity_command(learning)
    if name is not None:
        return walking_test(learning, command), name
    if command is not None:
        raise ValueError('this task has no velocity command: omit --command')
    return learning, None


def walking_test(learning: LearningCfg, fixed: TestCommand = None) -> LearningCfg:
    """Return a velocity task under test conditions.

    Commands are sampled from the whole range that was trained, uniformly, every 5 s, or are `fixed` (forward, lateral
    [m/s], yaw rate [rad/s]), or of a term. Sensors have no noise and no delay, and nothing is randomized but where
    robots start.
    """
    name = velocity_command(learning)
    assert name is not None
    command = learning.commands[name]
    if fixed is None:
        every_command = command.params | {'standing': 0.0, 'turning': 0.0, 'by_level': False}
        command = command.update(params=every_command, resample_time=COMMAND_TIME)
    elif isinstance(fixed, CommandTermCfg):
        command = fixed
    else:
        _warn_of_speeds(fixed, command.params)
        command = CommandTermCfg(term='uniform', params={'low': list(fixed), 'high': list(fixed)})
    starts = [
        cfg.update(params={key: False if key == 'by_level' else value for key, value in cfg.params.items()})
        for cfg in learning.randomizations
        if cfg.term in START_TERMS
    ]
    return learning.update(
        commands=learning.commands | {name: command},
        observations=[cfg.update(noise=0.0, delay=0) for cfg in learning.one_group('a walking test')],
        randomizations=starts,
        curricula=[],
    )


def _warn_of_speeds(command: tuple[float, float, float], trained: Mapping[str, Any]) -> None:
    """Warn of a command beyond those that were trained."""
    for name, speed in zip(('forward', 'lateral', 'yaw_rate'), command, strict=True):
        low, high = trained.get(name, (-math.inf, math.inf))
        if speed and not low <= speed <= high:
            log.warning('command %g for %r is beyond what was trained, %g to %g', speed, name, low, high)


def _test_config(config: Config, steps: int, seed: int, on_device: bool, walks: bool) -> Config:
    """Return a config of one episode per env; on a device, which cannot wait for the host to stop, more follow.

    Of robots that walk, contacts of all links are measured.
    """
    tasks = [task.model_copy(update={'max_episode_steps': steps}) for task in config.task_configs]
    if walks:
        tasks = [task.model_copy(update={'robots': list(map(_measured, task.robots))}) for task in tasks]
    changes: dict[str, Any] = {
        'task_configs': tasks if on_device else [tasks[i % len(tasks)] for i in range(config.env_num)],
        'episode_order': 'cycle' if on_device else 'once',
        'metrics_save_path': None,
        'seed': seed,
    }
    return config.model_copy(update=changes)


def _measured(robot: RobotCfg) -> RobotCfg:
    """Return a robot with a sensor of the contacts of its links."""
    sensor = SensorCfg(name='link_contacts', type='LinkContacts')
    return robot.model_copy(update={'sensors': [*(robot.sensors or []), sensor]})


def _run(
    policy: ActFn, envs: VectorEnv, obs: Any, steps: int, test: _Test | None, on_step: Callable[[int, int], None]
) -> Evaluation:
    arrays, xp, n = envs.core.state.arrays, envs.core.state.xp, envs.num_envs
    returns, lengths = arrays.zeros(n, 'float64'), arrays.zeros(n, 'float64')
    ended, failed = arrays.zeros(n, 'bool'), arrays.zeros(n, 'bool')
    metrics = {name: arrays.zeros(n, 'float64') for name in envs.core.learning.metrics}
    running = ~ended
    for step in range(1, steps + 1):
        state = envs.core.state
        # a step may sample the next one
        commanded = None if test is None else xp.asarray(state.command(test.command), copy=True)
        obs, rewards, terminated, truncated, info = envs.step(policy(obs))
        rewards, terminated, truncated = (arrays.asarray(each) for each in (rewards, terminated, truncated))
        returns += xp.where(running, rewards, 0.0)
        lengths += running
        failed |= running & arrays.asarray(info['failed'])
        ended |= running & terminated & ~failed
        over = terminated | truncated
        for name in metrics.keys() & info.keys():
            metrics[name] += xp.where(running & over, arrays.asarray(info[name]), 0.0)
        if test is not None:
            test.tracker.add(state, commanded, running & ~failed)
            for meter in (test.gait, test.course, test.overlap):
                if meter is not None:
                    meter.add(running & ~failed)
        running = running & ~over
        if test is not None and test.pusher.add(state, running, step) and test.course is not None:
            test.course.pushed()
        on_step(step, steps)
        if not arrays.on_device and not running.any():  # a device is not queried, it continues to the end
            break
    columns = [returns, lengths, xp.astype(ended, returns.dtype), xp.astype(failed, returns.dtype), *metrics.values()]
    figures = to_host(xp.stack(columns).mean(axis=-1)).tolist()
    means = dict(zip(metrics, figures[4:], strict=True))
    result = Evaluation(n, steps * envs.core.step_dt, *figures[:4], metrics=means)
    if test is None:
        return result
    gait = None if test.gait is None else test.gait.result()
    overlap = None if test.overlap is None else test.overlap.result()
    result = replace(result, tracking=test.tracker.result(), gait=gait, overlap=overlap)
    if test.course is None:
        return result
    still, still_pushed = test.course.stillness()
    return replace(result, heading_error=test.course.heading_error, still=still, still_pushed=still_pushed)


@dataclass
class _Test:
    """Test of a task with a velocity command: its name, the pushes, and meters."""

    command: str
    tracker: _Tracker
    pusher: _Pusher
    gait: GaitMeter | None
    course: CourseMeter | None
    overlap: OverlapMeter | None


class _Tracker:
    """Meter of the errors of commanded velocities; all envs have started together."""

    def __init__(self, arrays: ArrayMaker, n: int, period: float, step_dt: float):
        self._window = max(round(period / step_dt), 1)
        self._step_dt = step_dt
        self._history = arrays.zeros((self._window, n, 3), 'float64')  # forward, lateral, yaw
        self._count = 0
        self._sums = arrays.zeros(5, 'float64')  # four errors, then the number of samples

    def add(self, state: RobotState, command: Any, counts: Any) -> None:
        """Add a step, under these commands `(n, 3)`; `counts` bool `(n,)` selects the envs that count."""
        xp = state.xp
        velocity = xp.concat([state.base_linear_velocity_b[:, :2], state.base_angular_velocity_b[:, 2:]], axis=-1)
        self._history[self._count % self._window] = velocity
        self._count += 1
        mean = self._history[: self._count].mean(axis=0)
        rows = [
            row
            for each in (mean, velocity)
            for row in (xp.linalg.vector_norm((each - command)[:, :2], axis=-1), xp.abs((each - command)[:, 2]))
        ]
        rows = xp.stack([xp.astype(row, self._sums.dtype) for row in (*rows, counts)])
        self._sums += xp.where(counts, rows, 0.0).sum(axis=-1)

    def result(self) -> Tracking:
        """Return the means; the host waits for a device."""
        *errors, samples = to_host(self._sums).tolist()
        velocity, yaw_rate, velocity_now, yaw_rate_now = (error / max(samples, 1.0) for error in errors)
        period = self._window * self._step_dt
        return Tracking(velocity, velocity_now, yaw_rate, yaw_rate_now, period)


class _Pusher:
    """Source of random pushes of all envs."""

    def __init__(self, arrays: ArrayMaker, speed: float, every: int, seed: int):
        self._speed, self._every = speed, every
        self._rng = arrays.random(seed)

    def add(self, state: RobotState, running: Any, step: int) -> bool:
        """Add a step, after which the envs `running`, bool `(n,)`, go on; returns True if they were pushed."""
        if self._speed == 0.0 or step % self._every:
            return False
        xp = state.xp
        bearing = self._rng.uniform(-math.pi, math.pi, state.env_num)  # fallen ones too: the others' stay
        push = self._speed * xp.stack([xp.cos(bearing), xp.sin(bearing)], axis=-1)
        velocity = state.articulation.get_linear_velocity()
        pushed = xp.concat([xp.astype(velocity[:, :2] + push, velocity.dtype), velocity[:, 2:]], axis=-1)
        selection = state.select(running)
        with selection.masked_writes():
            state.articulation.set_linear_velocity(selection.take(pushed), env_ids=selection.ids)
        state.changed()
        return True
