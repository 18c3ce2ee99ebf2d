"""Toys that the tests of distribution share: tasks that fail or die on purpose, two Envs side by side.

Robots and most controllers are those of `tests/toys.py`.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from internutopia.config import TaskCfg
from internutopia.core.datahub import DataHub
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.task import BaseReward, BaseTask
from internutopia.core.vec_env import Env

PROCS, ENVS_EACH = 2, 2
ENVS = PROCS * ENVS_EACH
PATIENCE = 300.0  # s, that anything may take that is waited for: a busy machine is slow


def move(x: float = 0.2, y: float = 0.1) -> dict[str, Any]:
    """An action of the toy arm."""
    return {'arm': {'drive': [[x, y]]}}


@BaseTask.register('RayToy')
class RayToy(BaseTask):
    """Done after `config.max_steps` steps, or when reported finished; tells where it is (`tell_pid`: its process, too).

    With `config.picture` it shows a picture of so many rows and columns, another one after each step.

    `config.fault` is what goes wrong: `{'where': method, 'step': from then on, 'what': ..., 'log': file}`. Each time
    puts a line into the log; with `times` it stops after so many. `what` is `'raise'`, `'kill'` (of its own process) or
    `'wait'` (until there is a file beside the log, named `go`).
    """

    def load(self) -> None:
        self._meet('load')
        super().load()

    def post_reset(self) -> None:
        super().post_reset()
        self._meet('post_reset')

    def get_observations(self) -> dict[str, Any]:
        self._meet('get_observations')
        obs = super().get_observations()
        poses = [np.concatenate(robot.articulation.get_world_pose()) for robot in self.robots.values()]
        names = [robot.config.name for robot in self.robots.values()]
        obs['place'] = {'offset': np.array(self.env_offset), 'poses': poses, 'names': names, 'task': self.name}
        if getattr(self.config, 'tell_pid', False):
            obs['process'] = {'pid': os.getpid()}
        if size := getattr(self.config, 'picture', 0):
            obs['picture'] = {'pixels': np.random.default_rng(self.steps).random((size, size))}
        return obs

    def is_done(self) -> bool:
        self.steps += 1
        self._meet('is_done')
        return self.steps >= getattr(self.config, 'max_steps', np.inf) or DataHub.get_episode_finished(self.name)

    def calculate_metrics(self) -> dict[str, Any]:
        self._meet('calculate_metrics')
        joints = [robot.articulation.get_joint_positions().tolist() for robot in self.robots.values()]
        return {**super().calculate_metrics(), 'steps': self.steps, 'joints': joints}

    def _meet(self, where: str) -> None:
        fault = getattr(self.config, 'fault', None)
        if fault is not None and fault['where'] == where and self.steps >= fault.get('step', 0):
            commit(fault)


@BaseReward.register('RayReward')
class RayReward(BaseReward):
    """How far the arm has turned, and the number of steps so far."""

    def calc(self) -> float:
        (robot,) = [robot for name, robot in self.task.robots.items() if name == 'arm']
        return float(robot.articulation.get_joint_positions()[0]) + self.task.steps

    def _calc_next_state(self) -> None:
        pass


@BaseReward.register('FussyReward')
class FussyReward(RayReward):
    """Saves the number of steps; loads none below zero."""

    def save_state(self, env_ids: Any = ...) -> int:
        return self.task.steps

    def load_state(self, state: Any, env_ids: Any = ...) -> None:
        if state < 0:
            raise RuntimeError(f'cannot load {state!r}')


def commit(fault: dict[str, Any]) -> None:
    """Let something go wrong in this process."""
    log = Path(fault['log'])
    if len(log.read_text().splitlines() if log.exists() else []) >= fault.get('times', np.inf):
        return
    with log.open('a') as file:
        file.write(f'{os.getpid()}\n')
    if fault['what'] == 'kill':
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault['what'] == 'wait':
        wait_until((log.parent / 'go').exists)
    else:
        raise RuntimeError(f'broken in {fault["where"]}')


class Deadly:
    """Kills the process that reads it, but not the one that made it, so many times."""

    def __init__(self, log: Path, times: float = 1, maker: int | None = None):
        self._fault = {'what': 'kill', 'log': log, 'times': times}
        self._maker = os.getpid() if maker is None else maker
        if os.getpid() != self._maker:
            commit(self._fault)

    def __reduce__(self) -> Any:
        return Deadly, (self._fault['log'], self._fault['times'], self._maker)


class Pair:
    """A local Env and a distributed one of as many envs; what is called on both must give the same."""

    def __init__(self, local: Env, ray: Env):
        self.local = local
        self.ray = ray
        self._ids = itertools.count()

    def queue(self, *tasks: TaskCfg, ray: Sequence[TaskCfg] | None = None) -> list[int]:
        """Let these be the next episodes of both, or others of the distributed one; returns their ids."""
        ids = [next(self._ids) for _ in tasks]
        for env, own in ((self.local, tasks), (self.ray, ray or tasks)):
            snapshots = [EpisodeQueue([task]).take().snapshot for task in own]  # pyright: ignore[reportOptionalMemberAccess]
            env.task_config_manager.put_back([Episode(i, i, make) for i, make in zip(ids, snapshots, strict=True)])
        return ids

    def clear(self) -> None:
        """Leave both without episodes, and with the same number of steps made: frames are counted by it."""
        for env in (self.local, self.ray):
            while env.task_config_manager.take():
                pass
            env.reset()
        self.local.runner.set_current_time_step_index(0)
        self.ray._runner._steps.counts[:] = [0] * PROCS  # pyright: ignore[reportAttributeAccessIssue]

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(name)

        def call(*arguments: Any, **options: Any) -> Any:
            here, there = (outcome(getattr(env, name), *arguments, **options) for env in (self.local, self.ray))
            assert same(here, there), f'{name}{arguments}: {here} locally, {there} distributed'
            if isinstance(there, Failure):
                raise there.error
            return there

        return call


class Failure:
    """An exception that a call ended with."""

    def __init__(self, error: Exception):
        self.error = error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failure) and repr(self) == repr(other)

    def __repr__(self) -> str:
        return f'{type(self.error).__name__}({self.error})'


def outcome(call: Any, *arguments: Any, **options: Any) -> Any:
    """What a call returns, or its `Failure`."""
    try:
        return call(*arguments, **options)
    except Exception as error:
        return Failure(error)


def same(a: Any, b: Any) -> bool:
    """Whether two nested values are of the same types and equal to the bit; observations are dicts of any class."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if is_dataclass(a):
        return same(vars(a), vars(b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == 'f')
    return a == b


def results_of(env: Env, episode_ids: Sequence[int]) -> list[dict[str, Any]]:
    """The lines of these episodes in the results file, in the order of episodes."""
    lines = map(json.loads, Path(env.config.results_file or '').read_text().splitlines())
    return sorted((line for line in lines if line['episode_id'] in episode_ids), key=lambda line: line['episode_id'])


def take_ids(env: Env, count: int) -> list[int]:
    """Take so many episodes from the head of the queue; their ids."""
    episodes = [env.task_config_manager.take() for _ in range(count)]
    return [episode.id for episode in episodes if episode is not None]


def pid_of(env: Env, env_id: int) -> int:
    """The process in which an env runs; its task must have `tell_pid`."""
    return env.get_observations()[env_id]['process']['pid']


def kill(pid: int) -> None:
    """End a process at once, and see it gone."""
    process = psutil.Process(pid)
    process.kill()
    wait_until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Any) -> None:
    """Wait for something that will be true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.01)
