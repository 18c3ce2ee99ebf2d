"""Cart-poles, which are nearly all overhead: pushes to either side, against vector envs that have a formula for them.

Gymnasium's batched cart-pole and EnvPool's are a formula in code, one Euler step of 20 ms each; ours is a model in a
physics engine, in four substeps, like any other robot.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows.vector_envs import Contender, VectorEnvRace, at_once, envpool
from internutopia.bench.measure import Row
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import cart_pole


def cart_poles(quick: bool) -> list[Row]:
    """4096 cart-poles through the array API."""
    env_num, rounds, steps = (8, 1, 20) if quick else (4096, 6, 100)
    ours, batched, pooled = 'array API', 'gymnasium, batched (CartPole-v1)', 'EnvPool (CartPole-v1)'
    race = VectorEnvRace(
        'cart-pole',
        {batched: at_once('CartPole-v1'), pooled: envpool('CartPole-v1'), ours: _array_api},
        {pooled: 'envpool'},
    )
    pushes = np.random.default_rng(0).integers(0, 2, (steps, env_num))
    return race.rows(pushes, rounds, 20, [(ours, batched, None), (ours, pooled, None)])


def _array_api(stack: ExitStack, pushes: NDArray[Any]) -> Contender:
    envs = stack.enter_context(closing(VectorEnv(cart_pole.config(pushes.shape[1], 0, discrete=True))))
    return envs.reset, lambda k: envs.step(pushes[k])
