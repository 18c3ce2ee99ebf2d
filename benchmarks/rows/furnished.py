"""Furnished USD scene, and what it costs at the start: many envs of it, and its concave walls."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.rows.cache import cache_at
from internutopia.bench.measure import Ratio, Row, seconds_of
from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.model.asset_paths import resolve
from internutopia.model.importers.load import load_spec
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

SCENE = 'scenes/apartment.usda'


def furnished(quick: bool) -> list[Row]:
    """Starting one env and many of a scene that is compiled again each time; walls with and without the cache."""
    with tempfile.TemporaryDirectory() as folder, cache_at(Path(folder) / 'cache'):
        return [_many_envs(Path(folder), quick), _second_start(Path(folder), quick)]


def _many_envs(folder: Path, quick: bool) -> Row:
    many, rounds = (8, 1) if quick else (64, 7)
    image = resolve('scenes/apartment_floor.png', suffixes=('.png',))
    (folder / image.name).write_bytes(image.read_bytes())
    text = resolve(SCENE).read_text()
    seconds: dict[int, list[float]] = {1: [], many: []}
    for number in range(2 * rounds + 2):  # the first of each are not counted
        scene = folder / f'scene_{number}.usda'
        scene.write_text(f'{text}\n# {number}\n')  # so it is in no cache of compiled scenes
        env_num = (1, many)[number % 2]
        robot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg])
        config = Config(
            simulator=SimConfig(physics_dt=1 / 240, substeps=4),
            env_num=env_num,
            metrics_save_path='none',
            episode_order='cycle',
            task_configs=[SingleInferenceTaskCfg(scene_asset_path=str(scene), robots=[robot])],
        )
        seconds[env_num].append(seconds_of(lambda config=config: _start(config)))
    few, lot = (np.array(seconds[count][1:]) for count in (1, many))
    return Row(
        what=f'start of a furnished scene, {many} envs vs 1',
        unit='s',
        ours=float(np.median(lot)),
        reference=float(np.median(few)),
        ratio=_ratio(lot / few),
        bound=1.3,
        limit='at most',
        note='apartment.usda, read and compiled anew; ratio of times',
    )


def _second_start(folder: Path, quick: bool) -> Row:
    from pxr import Sdf

    walls = folder / 'walls.usda'
    layer = Sdf.Layer.CreateNew(str(walls))
    Sdf.CopySpec(Sdf.Layer.FindOrOpen(str(resolve(SCENE))), '/World/walls', layer, '/walls')
    layer.Save()
    first, second = [], []
    for number in range(1 if quick else 5):
        with cache_at(folder / f'cache_{number}'):
            first.append(seconds_of(lambda: load_spec(walls)))
            second.append(seconds_of(lambda: load_spec(walls)))
    return Row(
        what='walls as one mesh with doorway and windows, read for the second time vs decomposed',
        unit='ms',
        ours=1e3 * float(np.median(second)),
        reference=1e3 * float(np.median(first)),
        ratio=_ratio(np.array(first) / np.array(second)),
        bound=20.0,
        note='from the file to the spec; the pieces come from the cache on disk',
    )


def _start(config: Config) -> None:
    with closing(Env(config)) as env:
        env.reset()


def _ratio(ratios: np.ndarray) -> Ratio:
    low, median, high = np.percentile(ratios, [25, 50, 75])
    return Ratio(float(median), float(low), float(high))
