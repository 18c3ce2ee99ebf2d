"""Overhead of a step: what both APIs add to physics, and how much of the speed of many cores that leaves.

Physics is spread over cores, the overhead of an API is not: a step with `physics` seconds on one thread and `serial`
seconds outside it has on n cores the efficiency `(physics / n) / (physics / n + serial)`, Amdahl's law for a part that
scales perfectly. `serial` is the step without physics, in states that do not change. All times are CPU times, so
other work on the machine matters little.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

from internutopia.bench.measure import Ratio, Row, quartiles
from internutopia.bench.workloads import ANT, h1_config, h1_learning, mujoco_world
from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.core.vec_env import Env
from internutopia.engines.base import World
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import cart_pole, reach, velocity

ENV_NUMS = 64, 256, 1024, 4096
_EPISODE = 480  # steps of an episode: one of so many envs restarts in each step on average
_LEAST_TURNS, _LONGEST = 3, 0.5  # turns that are made in any case; s of physics, after which no more are
BOUND_CORES = 64  # cores that the bounds are for
# Least efficiency of the array API with compiled terms on that many cores, by workload and number of envs
BOUNDS = {
    ('H1 velocity', 64): 0.3,
    ('H1 velocity', 256): 0.6,
    ('H1 velocity', 1024): 0.8,
    ('Franka reach', 256): 0.6,
    ('cart-pole', 4096): 0.3,
}


def efficiency(physics: float, serial: float, cores: int) -> float:
    """Return the share of the speed of physics alone on that many cores; both times in the same unit."""
    return physics / cores / (physics / cores + serial)


def overhead(quick: bool) -> list[Row]:
    """Return rows by workload, API and number of envs: time of a step outside physics, and physics on one thread.

    `plain`: without `LearningCfg.compiled`.
    """
    env_nums = (4,) if quick else ENV_NUMS
    rows: list[Row] = []
    for workload, (config_of, learning) in WORKLOADS.items():
        for env_num in env_nums:
            config = config_of(env_num)
            config.simulator.threads = 1
            what, turns = f'{workload}, {env_num} envs', 2 if quick else 20
            bound = BOUNDS.get((workload, env_num))
            rows.append(_row(f'{what}, plain array API', *_array_api(config, learning, turns, compiled=False)))
            rows.append(_row(f'{what}, array API', *_array_api(config, learning, turns, compiled=True), bound))
            rows.append(_row(f'{what}, list API', *_list_api(config, learning, turns)))
            if workload == 'H1 velocity':
                again = max(1, env_num // _EPISODE)
                parts = _array_api(config, learning, turns, compiled=True, restarts=again)
                rows.append(_row(f'{what}, array API, {again} of them restart', *parts))
    return rows


def _array_api(
    config: Config, learning: LearningCfg | None, turns: int, compiled: bool, restarts: int = 0
) -> tuple[float, Ratio]:
    learning = learning or config.task_configs[0].learning
    assert learning is not None
    with closing(VectorEnv(config, learning.update(compiled=compiled))) as envs:
        actions = np.zeros(envs.action_space.shape or (), np.float32)
        masks = ((np.arange(envs.num_envs) - k) % envs.num_envs < restarts for k in itertools.count())

        def step() -> None:
            envs.step(actions)
            if restarts:
                envs.reset(options={'reset_mask': next(masks)})

        return measure_parts(envs.core.runner.world, envs.reset, step, turns)


def _list_api(config: Config, learning: LearningCfg | None, turns: int) -> tuple[float, Ratio]:
    with closing(Env(config)) as env:
        env.reset()
        actions = [_zero_action(env, config, learning)] * config.env_num
        return measure_parts(env.runner.world, env.reset, lambda: env.step(actions), turns)


def _row(what: str, physics: float, serial: Ratio, bound: float | None = None) -> Row:
    median, quick, slow = serial
    return Row(
        what=f'{what}: processor time of a step outside physics vs physics (ratio: efficiency on {BOUND_CORES} cores)',
        unit='us',
        ours=1e6 * median,
        reference=1e6 * physics,
        ratio=Ratio(*(efficiency(physics, seconds, BOUND_CORES) for seconds in (median, slow, quick))),
        bound=bound,
    )


def measure_parts(
    world: World, reset: Callable[[], object], step: Callable[[], object], turns: int
) -> tuple[float, Ratio]:
    """Return the seconds of physics, and of a step without it.

    A step with physics, which drives out of the caches what a step needs, and two pairs without it take turns: as many
    as `turns`, or fewer where physics takes long.
    """
    reset()
    batch = mujoco_world(world).batch(0)[0]
    calls = {'step': batch.step, 'forward': batch.forward}  # forward: poses of links that are read
    parts, others, physics, left_out = list[float](), list[float](), 0.0, False

    def timed(call: Callable[..., None]) -> Callable[..., None]:
        def run(*arguments: Any) -> None:
            nonlocal physics
            if left_out:
                return
            begin = time.process_time()
            call(*arguments)
            physics += time.process_time() - begin

        return run

    for name, call in calls.items():
        setattr(batch, name, timed(call))
    step()  # it computes what is kept
    while len(parts) < turns and (len(parts) < _LEAST_TURNS or sum(parts) < _LONGEST):
        physics, left_out = 0.0, False
        step()
        parts.append(physics)
        left_out = True
        for _ in range(2):
            begin = time.process_time()
            step()
            step()
            others.append((time.process_time() - begin) / 2)
    for name in calls:
        delattr(batch, name)  # its own again
    return float(np.median(parts)), quartiles(others)


def _zero_action(env: Env, config: Config, learning: LearningCfg | None) -> dict[str, Any]:
    """Return the learner's action of zeros in the form of the list API, for one env."""
    task = config.task_configs[0]
    learning = learning or task.learning
    assert learning is not None and learning.action is not None
    robot, controller = task.robots[0].name, learning.action.controller
    space = env.action_space(0, robot, controller)
    assert space is not None
    return {robot: {controller: np.zeros(space.shape or (), np.float32)}}


# How to configure n envs, and their learner where the task names none
WORKLOADS: dict[str, tuple[Callable[[int], Config], LearningCfg | None]] = {
    'H1 joints': (lambda env_num: h1_config(env_num, ['scenes/empty.xml']), h1_learning()),
    'H1 velocity': (lambda env_num: velocity.config(env_num, 0), None),
    'Ant': (ANT.config, ANT.learning()),
    'cart-pole': (lambda env_num: cart_pole.config(env_num, 0), None),
    'Franka reach': (lambda env_num: reach.config(env_num, 0), None),
}
