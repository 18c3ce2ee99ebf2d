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
from internutopia.config import Config
from internutopia.core.vec_env import Env

_GROWTH_BOUND = 10.0  # [MB]
_KEPT_BOUND = 1.4  # what is kept of the process, over the size of the models that the cache may keep
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
    return [*rows, _kept(quick)]


def _kept(quick: bool) -> Row:
    """Measure the memory left after `close()` of an Env that ran more scenes than the cache may keep."""
    import psutil

    process = psutil.Process()
    scene_num, env_num = (8, 4) if quick else (320, 8)
    with tempfile.TemporaryDirectory() as folder:
        config = h1_config(env_num, write_scenes(Path(folder), scene_num))
        with closing(Env(config.update(task_configs=config.task_configs[:1]))) as env:
            env.reset()  # what is needed for any scene is there, and the cache as good as empty
        before = process.memory_info().rss
        with closing(Env(config)) as env:
            for _ in range(2 * scene_num // env_num):
                env.reset(list(range(env_num)))
        kept = process.memory_info().rss - before
    cache = int(config.simulator.scene_cache)
    ratio = kept / cache
    return Row(
        what=f'kept after close(), {scene_num} scenes x 2 through {env_num} envs; SimConfig.scene_cache',
        unit='MB',
        ours=kept / 1e6,
        reference=cache / 1e6,
        ratio=Ratio(ratio, ratio, ratio),
        bound=_KEPT_BOUND,
        limit='at most',
    )


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
