"""Ant and Humanoid with gymnasium's own models, against gymnasium's and EnvPool's vector envs.

The vector envs observe, compute a reward and reset robots that are unhealthy; the list API and the bare engine let them
go on. The list API computes no reward, and of gymnasium's observations everything but contact forces and, of Humanoid,
what its bodies' inertia and velocities are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import gymnasium
import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from benchmarks.rows.vector_envs import Contender, VectorEnvRace, envpool, one_by_one
from internutopia.bench.measure import Row
from internutopia.bench.workloads import ANT, GYMNASIUM_SUBSTEPS, GymnasiumRobot
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv

_MOST_PROCESSES = 128  # an env each
_ARRAY, _PLAIN, _LIST, _BARE = 'array API', 'plain array API', 'list API without reward', 'bare Batch.step'
HUMANOID = GymnasiumRobot('humanoid', 0.003, 17, 0.4, (1.0, 2.0), forward=1.25, alive=5.0, effort=0.1)


def ant(quick: bool) -> list[Row]:
    """64 ants."""
    env_num, rounds, steps = (4, 1, 20) if quick else (64, 6, 100)
    return _race(ANT, env_num, rounds, steps, {'async': 3.0, 'EnvPool': 1.15, 'bare': 0.95})


def humanoid(quick: bool) -> list[Row]:
    """64 and 1024 humanoids."""
    sizes = [(4, 1, 20)] if quick else [(64, 4, 60), (1024, 1, 20)]
    return [row for size in sizes for row in _race(HUMANOID, *size, bounds={})]


def _race(robot: GymnasiumRobot, env_num: int, rounds: int, steps: int, bounds: dict[str, float]) -> list[Row]:
    """Both APIs and the bare engine against the vector envs that people use."""
    forked, looped, pooled = (
        f'{kind} ({robot.name.title()}-{version})'
        for kind, version in (
            ('gymnasium AsyncVectorEnv', 'v5'),
            ('gymnasium SyncVectorEnv', 'v5'),
            ('EnvPool', 'v4'),
        )
    )
    others = {
        forked: (one_by_one(gymnasium.vector.AsyncVectorEnv, f'{robot.name.title()}-v5'), 'imageio'),
        looped: (one_by_one(gymnasium.vector.SyncVectorEnv, f'{robot.name.title()}-v5'), 'imageio'),
        pooled: (envpool(f'{robot.name.title()}-v4'), 'envpool'),
    }
    if env_num > _MOST_PROCESSES:
        del others[forked]
    ours = {
        _ARRAY: _array_api(robot, compiled=True),
        _PLAIN: _array_api(robot, compiled=False),
        _LIST: functools.partial(_list_api, robot),
        _BARE: functools.partial(_bare_batch, robot),
    }
    contest = VectorEnvRace(
        robot.name.title(),
        {**{name: make for name, (make, _) in others.items()}, **ours},
        {name: module for name, (_, module) in others.items()},
    )
    largest = robot.largest_control
    controls = np.random.default_rng(0).uniform(-largest, largest, (steps, env_num, robot.controls))
    pairs = [
        (_ARRAY, forked, bounds.get('async')),
        (_ARRAY, looped, None),
        (_ARRAY, pooled, bounds.get('EnvPool')),
        (_ARRAY, _BARE, bounds.get('bare')),
        (_PLAIN, pooled, None),
        (_PLAIN, _BARE, None),
        (_LIST, forked, None),
        (_LIST, pooled, None),
        (_LIST, _BARE, None),
        (_BARE, pooled, None),
    ]
    raced = [pair for pair in pairs if pair[1] in {**others, **ours}]
    return contest.rows(controls.astype(np.float32), rounds, min(steps, 20), raced)


def _array_api(robot: GymnasiumRobot, compiled: bool) -> Callable[[ExitStack, NDArray[Any]], Contender]:
    def make(stack: ExitStack, controls: NDArray[Any]) -> Contender:
        learning = robot.learning().update(compiled=compiled)
        envs = stack.enter_context(closing(VectorEnv(robot.config(controls.shape[1]), learning)))
        return envs.reset, lambda k: envs.step(controls[k])

    return make


def _list_api(robot: GymnasiumRobot, stack: ExitStack, controls: NDArray[Any]) -> Contender:
    env = stack.enter_context(closing(Env(robot.config(controls.shape[1]))))
    actions = [[{robot.name: {'actuators': row}} for row in rows] for rows in controls]
    return env.reset, lambda k: env.step(actions[k])


def _bare_batch(robot: GymnasiumRobot, stack: ExitStack, controls: NDArray[Any]) -> Contender:
    batch = Batch(mujoco.MjModel.from_xml_path(str(robot.model)), controls.shape[1])
    ctrl = batch.bind('ctrl')

    def step(k: int) -> None:
        ctrl[:] = controls[k]
        batch.step(nstep=GYMNASIUM_SUBSTEPS)

    return batch.reset, step
