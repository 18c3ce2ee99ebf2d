"""Memory that stays behind: growth of the process over many episodes, and whether later ones take longer."""

from __future__ import annotations

import gc
import importlib.util
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from internutopia.bench.measure import Ratio, Row
from internutopia.bench.workloads import h1_actions, h1_config, h1_targets, write_scenes
from internutopia.core.config import Config
from internutopia.core.vec_env import Env

_GROWTH_BOUND = 10.0  # [MB]
_WARM_UP = 5  # episodes until caches are filled


def memory(quick: bool) -> list[Row]:
    """Growth over episodes of one scene, and over episodes that each run another scene in every env."""
    episodes, steps, scene_num = (4, 10, 4) if quick else (100, 100, 16)
    few_steps = steps // 5
    same = f'growth over {episodes} episodes of {steps} steps, 1 env'
    rotating = f'growth over {episodes} episodes of {few_steps} steps, {scene_num} scenes x 4 envs that rotate'
    if importlib.util.find_spec('psutil') is None:
        return [Row(what=what, unit='MB', note='skipped: pip install psutil') for what in (same, rotating)]
    with tempfile.TemporaryDirectory() as folder:
        scenes = write_scenes(Path(folder), scene_num)
        growth, _ = _run(h1_config(1, scenes[:1]), episodes, steps)
        rotating_growth, seconds = _run(h1_config(4 * scene_num, scenes), episodes, few_steps)
    rows = [
        Row(what=what, unit='MB', ours=value, bound=_GROWTH_BOUND, limit='at most')
        for what, value in ((same, growth), (rotating, rotating_growth))
    ]
    first, last = np.array_split(seconds, 4)[0], np.array_split(seconds, 4)[-1]
    slower = float(np.median(last) / np.median(first))
    rows.append(
        Row(
            what='rotating scenes: last quarter of the episodes vs first',
            unit='CPU s per episode',
            ours=float(np.median(last)),
            reference=float(np.median(first)),
            ratio=Ratio(slower, slower, slower),
            bound=1.2,
            limit='at most',
            note='ratio of times',
        )
    )
    return rows


def _run(config: Config, episodes: int, steps: int) -> tuple[float, NDArray[np.float64]]:
    """Growth [MB] after the first episodes and CPU seconds per episode; the order of envs turns at each reset."""
    import psutil

    process = psutil.Process()
    seconds: list[float] = []
    before = 0
    with closing(Env(config)) as env:
        env.reset()
        actions = h1_actions(h1_targets(env, steps))
        for episode in range(_WARM_UP + episodes):
            if episode == _WARM_UP:
                gc.collect()
                before = process.memory_info().rss
            begin = time.process_time()
            env.reset(np.roll(np.arange(env.env_num), episode).tolist())
            for action in actions:
                env.step(action)
            seconds.append(time.process_time() - begin)
        gc.collect()
        growth = (process.memory_info().rss - before) / 1e6
    return growth, np.array(seconds[_WARM_UP:])
