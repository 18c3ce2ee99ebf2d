"""Restarts: steps of the array API in which some envs are reset."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from internutopia.bench.apis import h1_envs, h1_joint_targets
from internutopia.bench.measure import Row, race


def restarts(quick: bool) -> list[Row]:
    """Measure steps in which some envs are reset against steps in which none is."""
    env_num, rounds, length = (16, 1, 4) if quick else (256, 16, 32)
    reset_num = env_num // length
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(h1_envs(Path(folder), env_num, length - 1)) as staggered,  # a step more for the reset
        closing(h1_envs(Path(folder), env_num)) as endless,
    ):
        endless.reset()
        actions = h1_joint_targets(endless, length)
        staggered.reset()
        for k in range(length):
            staggered.reset(options={'reset_mask': np.arange(env_num) // reset_num == k})
            staggered.step(actions[k])
        contenders = {'with': lambda k: staggered.step(actions[k]), 'without': lambda k: endless.step(actions[k])}
        result = race(contenders, endless.reset, rounds=rounds, steps=length, turn=4)
    return [
        Row(
            what=f'array API, step in which {reset_num} of {env_num} envs are reset vs a step without',
            unit='ms',
            ours=1e3 * result.median('with'),
            reference=1e3 * result.median('without'),
            ratio=result.speed('without', 'with'),
            note='ratio of times',
        )
    ]
