"""Size: what very many envs, and many scenes at a time, take of memory and time, and whether it grows in proportion.

All is told per env, for few envs and for many: what is in proportion has a ratio of one. What a scene takes by itself
(its model, and a batch with its threads) is told per scene.
"""

from __future__ import annotations

import gc
import importlib.util
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import internutopia_extension
from internutopia.bench.measure import Ratio, Row
from internutopia.bench.workloads import h1_actions, h1_config, write_scenes
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension.configs.robots.h1 import joint_controller
from internutopia_extension.learning_tasks import velocity

_SLACK = 3.0  # of what many envs take each, over what few do: processor caches, garbage collection
_PARTS = {'start and first reset': 'us', 'reset of all': 'us', 'step': 'us', 'memory': 'KB'}
Figures = dict[str, float]  # by part, for all envs [s], [bytes]
Started = tuple[Any, Callable[[], object], Callable[[], object]]  # envs, their reset and their step
Start = Callable[[int, Sequence[Path]], Started]  # so many envs in these scenes


def size(quick: bool) -> list[Row]:
    """H1s through both APIs, then H1s in many scenes against as many in one."""
    if importlib.util.find_spec('psutil') is None:
        return [Row(what='size', unit='KB', note='skipped: pip install psutil')]
    few, many, spread, scene_num = (4, 16, 16, 4) if quick else (1024, 16384, 1024, 64)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        scenes = write_scenes(Path(folder), scene_num)
        for api, start, chosen in (
            ('array API, H1 velocity', _array_api, []),
            ('list API, H1 joints', _list_api, scenes[:1]),
        ):
            small, large = (_in_own_process(start, env_num, chosen) for env_num in (few, many))
            for part, unit in _PARTS.items():
                values = large[part] / many, small[part] / few
                rows.append(_row(f'{api}, {part}, per env: {many} envs vs {few}', unit, *values, bound=_SLACK))
        one, mixed = (_in_own_process(_list_api, spread, chosen) for chosen in (scenes[:1], scenes))
    what = f'list API, H1 joints, {{}}, per env: {spread} envs on {scene_num} scenes vs on one'
    rows += [_row(what.format(part), unit, mixed[part] / spread, one[part] / spread) for part, unit in _PARTS.items()]
    per_scene = (mixed['memory'] - one['memory']) / (scene_num - 1)
    return [*rows, Row(what='memory of each further scene that envs run', unit='KB', ours=per_scene / 1e3)]


def _row(what: str, unit: str, ours: float, reference: float, bound: float | None = None) -> Row:
    ratio, factor = ours / reference if reference > 0 else np.nan, 1e6 if unit == 'us' else 1e-3
    return Row(
        what=what,
        unit=unit,
        ours=factor * ours,
        reference=factor * reference,
        ratio=Ratio(ratio, ratio, ratio),
        bound=bound,
        limit='at most',
        note='' if unit == 'KB' else 'processor time',
    )


def _in_own_process(start: Start, env_num: int, scenes: Sequence[Path]) -> Figures:
    """Figures of envs in a process in which there were no others: what those left free would not be counted."""
    with ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as pool:
        return pool.submit(_measure, start, env_num, scenes).result()


def _array_api(env_num: int, scenes: Sequence[Path]) -> Started:
    envs = VectorEnv(velocity.config(env_num, 0))
    envs.reset()
    actions = np.zeros(envs.action_space.shape or (), np.float32)
    return envs, envs.reset, lambda: envs.step(actions)


def _list_api(env_num: int, scenes: Sequence[Path]) -> Started:
    env = Env(h1_config(env_num, scenes))
    env.reset()
    actions = h1_actions(np.zeros((1, env_num, len(joint_controller.joint_names)), np.float32))[0]
    env_ids = list(range(env_num))
    return env, lambda: env.reset(env_ids), lambda: env.step(actions)


def _measure(start: Start, env_num: int, scenes: Sequence[Path]) -> Figures:
    """Processor time [s] of each part, and the memory [bytes] that is taken after a step."""
    import psutil

    internutopia_extension.import_extensions()
    process, figures = psutil.Process(), Figures()
    envs, reset, step = start(4, scenes[:1])  # what is needed for any number of envs is there
    with closing(envs):
        step()
    gc.collect()
    before, begin = process.memory_info().rss, time.process_time()
    envs, reset, step = start(env_num, scenes)
    with closing(envs):
        figures['start and first reset'] = time.process_time() - begin
        step()
        figures['memory'] = process.memory_info().rss - before
        for part, action in (('step', step), ('reset of all', reset)):
            begin = time.process_time()
            action()
            figures[part] = time.process_time() - begin
    return figures
