"""Resets, and what they cost: one env among few and many, and a whole Env of a scene that is compiled already."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import h1_config, write_scenes
from internutopia.core.vec_env import Env


def reset_one(quick: bool) -> list[Row]:
    """Resetting one env of many against one env of few."""
    many, few, rounds = (16, 4, 1) if quick else (256, 4, 10)
    with tempfile.TemporaryDirectory() as folder:
        scenes = write_scenes(Path(folder), 1)
        with closing(Env(h1_config(many, scenes))) as large, closing(Env(h1_config(few, scenes))) as small:

            def reset() -> None:
                large.reset()
                small.reset()

            def step_both() -> None:
                # as in real life; physics also drives what a reset needs out of the processor's caches
                for env in (large, small):
                    env.step([None] * env.env_num)

            contenders = {'many': lambda k: large.reset([k * 7 % many]), 'few': lambda k: small.reset([k % few])}
            result = race(contenders, reset, rounds=rounds, steps=20, turn=1, before_turn=step_both)
    milliseconds = [1e3 * result.median(name) for name in ('many', 'few')]
    what = f'reset of 1 env of {many} after a step'
    return [
        Row(
            what=f'{what} vs 1 of {few}',
            unit='ms',
            ours=milliseconds[0],
            reference=milliseconds[1],
            ratio=result.speed('few', 'many'),
            bound=1.5,
            limit='at most',
            note='ratio of times',
        ),
        Row(what=what, unit='ms', ours=milliseconds[0], bound=1.0, limit='at most'),
    ]


def start_env(quick: bool) -> list[Row]:
    """Building an Env and resetting it for the first time."""
    env_num = 64 if quick else 1024
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        scenes = write_scenes(Path(folder), 1)
        for count in (1, env_num, env_num, env_num):
            config = h1_config(count, scenes)
            begin = time.perf_counter()
            with closing(Env(config)) as env:
                env.reset()
                seconds.append(time.perf_counter() - begin)
    what = f'Env(config) and first reset(), {env_num} envs of a cached scene'
    return [Row(what=what, unit='s', ours=float(np.median(seconds[1:])), bound=2.0, limit='at most')]
