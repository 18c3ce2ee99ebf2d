"""Remote simulation, and what it costs: `remote.VectorEnv` over loopback against `rl.VectorEnv` in the same program."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

import internutopia.remote as service  # what is heavy in it is imported when the row is measured
from internutopia import rl
from internutopia.bench.measure import Row, race
from internutopia.config import Config
from internutopia_extension.learning_tasks import cart_pole, h1_stand

STEP_SIZE = 10


def remote(quick: bool) -> list[Row]:
    """H1, whose physics is work, and a cart-pole, whose physics is next to nothing: 10 steps a call."""
    env_num, rounds, steps = (4, 1, 4) if quick else (64, 8, 24)
    threads = os.cpu_count() or 1
    contenders: list[tuple[str, Callable[..., Config], float | None]] = [
        ('H1', h1_stand.config, 0.6),
        ('cart-pole', cart_pole.config, None),
    ]
    return [
        _row(name, _without_ends(make(env_num, 0, threads=threads)), threads, rounds, steps, bound)
        for name, make, bound in contenders
    ]


def _without_ends(config: Config) -> Config:
    """The same task, which continues forever, so that ten steps are ten steps for both."""
    (task,) = config.task_configs
    assert task.learning is not None
    learning = task.learning.update(terminations=[])
    return config.update(task_configs=[task.update(learning=learning, max_episode_steps=None)])


def _row(name: str, config: Config, threads: int, rounds: int, steps: int, bound: float | None) -> Row:
    with (
        service.local_server(config, '--threads', str(threads), '--requests-per-second', '1e6') as url,
        closing(service.VectorEnv(config.env_num, url, step_size=STEP_SIZE)) as ours,
        closing(rl.VectorEnv(config)) as local,
    ):
        space = local.action_space
        space.seed(0)
        actions = [0.1 * np.asarray(space.sample()) for _ in range(steps)]
        seen: dict[str, Any] = {}

        def reset() -> None:
            ours.reset(seed=0)
            local.reset(seed=0)

        def remote_step(k: int) -> None:
            seen['ours'] = ours.step(actions[k])[0]

        def local_step(k: int) -> None:
            for _ in range(STEP_SIZE):
                seen['local'] = local.step(actions[k])[0]

        result = race({'ours': remote_step, 'local': local_step}, reset, rounds=rounds, steps=steps, turn=2)
    if not np.array_equal(seen['ours'], seen['local']):
        raise RuntimeError('the remote envs and the local ones did not do the same: their times say nothing')
    env_steps = config.env_num * STEP_SIZE
    milliseconds = [1000.0 * result.median(each) for each in ('ours', 'local')]
    return Row(
        what=f'remote.VectorEnv on loopback, {config.env_num} envs, {name}, {STEP_SIZE} steps a call, vs rl.VectorEnv',
        unit='env steps/s',
        ours=env_steps / result.median('ours'),
        reference=env_steps / result.median('local'),
        ratio=result.speed('ours', 'local'),
        bound=bound,
        note=(
            f'{threads} threads each; median call {milliseconds[0]:.1f} ms, local {milliseconds[1]:.1f} ms; '
            'observations equal to the bit at the end'
        ),
    )
