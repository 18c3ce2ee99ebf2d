"""Size: what very many envs, and many scenes at a time, take of memory and time, and whether it grows in proportion.

All is told per env, for few envs and for many: what is in proportion has a ratio of one. What a scene takes by itself
(its model, and a batch with its threads) is told per scene.
"""

from __future__ import annotations

import gc
import importlib.util
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.bench.measure import Ratio, Row
from internutopia.bench.workloads import h1_actions, h1_config, write_scenes
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension.configs.robots.h1 import joint_controller
from internutopia_extension.learning_tasks import velocity

_SLACK = 2.0  # of what many envs take each, over what few do: processor caches, garbage collection
_PARTS = {'start and first reset': 'us', 'reset of all': 'us', 'step': 'us', 'memory': 'KB'}
Figures = dict[str, float]  # by part, for all envs [s], [bytes]


def size(quick: bool) -> list[Row]:
    """H1s through both APIs, then H1s in many scenes against as many in one."""
    if importlib.util.find_spec('psutil') is None:
        return [Row(what='size', unit='KB', note='skipped: pip install psutil')]
    few, many, spread, scene_num = (4, 16, 16, 4) if quick else (1024, 16384, 1024, 64)
    with tempfile.TemporaryDirectory() as folder:
        scenes = write_scenes(Path(folder), scene_num)
        by_api: dict[str, Callable[[int], Figures]] = {
            'array API, H1 velocity': _array_api,
            'list API, H1 joints': lambda env_num: _list_api(env_num, scenes[:1]),
        }
        rows: list[Row] = []
        for api, figures_of in by_api.items():
            figures_of(4)  # what is needed for any number of envs is there
            small, large = figures_of(few), figures_of(many)
            for part, unit in _PARTS.items():
                values = large[part] / many, small[part] / few
                rows.append(_row(f'{api}, {part}, per env: {many} envs vs {few}', unit, *values, bound=_SLACK))
        _list_api(scene_num, scenes)
        one, mixed = _list_api(spread, scenes[:1]), _list_api(spread, scenes)
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


def _array_api(env_num: int) -> Figures:
    def start() -> tuple[VectorEnv, Callable[[], object], Callable[[], object]]:
        envs = VectorEnv(velocity.config(env_num, 0))
        envs.reset()
        actions = np.zeros(envs.action_space.shape or (), np.float32)
        return envs, envs.reset, lambda: envs.step(actions)

    return _measure(start)


def _list_api(env_num: int, scenes: Sequence[Path]) -> Figures:
    def start() -> tuple[Env, Callable[[], object], Callable[[], object]]:
        env = Env(h1_config(env_num, scenes))
        env.reset()
        actions = h1_actions(np.zeros((1, env_num, len(joint_controller.joint_names)), np.float32))[0]
        env_ids = list(range(env_num))
        return env, lambda: env.reset(env_ids), lambda: env.step(actions)

    return _measure(start)


def _measure(start: Callable[[], tuple[Any, Callable[[], object], Callable[[], object]]]) -> Figures:
    """Processor time [s] of each part, and the memory [bytes] that is taken after a step."""
    import psutil

    process = psutil.Process()
    gc.collect()
    before, figures = process.memory_info().rss, Figures()
    begin = time.process_time()
    envs, reset, step = start()
    with closing(envs):
        figures['start and first reset'] = time.process_time() - begin
        step()
        figures['memory'] = process.memory_info().rss - before
        for part, action in (('step', step), ('reset of all', reset)):
            begin = time.process_time()
            action()
            figures[part] = time.process_time() - begin
    return figures
