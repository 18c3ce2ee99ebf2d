"""Home in the form of GRScenes, and what it costs: to load, in memory, and in each step of an H1 in it."""

from __future__ import annotations

import importlib.util
import logging
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.homes import Home, write_home
from benchmarks.rows.cache import cache_at
from internutopia.bench.measure import Row, Step, race, seconds_of
from internutopia.bench.workloads import h1_config, mujoco_world
from internutopia.config import Config
from internutopia.config.simulator import ContactCfg
from internutopia.core.vec_env import Env
from internutopia.model.meshes.decomposition import DECOMPOSED
from internutopia.model.scene_cache import SceneCache, SceneFiles
from internutopia.util.log import log

_PLANE = 'scenes/empty.xml'
_STEPS = 40  # of a round: in that time an H1 that has its joints held does not fall


def home(quick: bool) -> list[Row]:
    """A home of 500 models, a small one in quick mode, that nothing has been kept of."""
    with tempfile.TemporaryDirectory() as folder, cache_at(Path(folder) / 'cache'):
        written = write_home(Path(folder) / 'home', 'small' if quick else 'home')
        return [*_loads(written), *_memory(written, quick), _step(written, quick)]


def _loads(written: Home) -> list[Row]:
    with closing(Env(_config(written, 1))) as env, _slowest_mesh() as slowest:
        first = seconds_of(env.reset)
        scene = mujoco_world(env.runner.world).scene(0)
        again = SceneCache(files=SceneFiles())  # as in another process, which has nothing in memory
        second = seconds_of(lambda: again.get(scene.source, scene.model.opt.timestep, ContactCfg()))
    collide = np.count_nonzero(scene.model.geom_contype | scene.model.geom_conaffinity)
    triangles = sum(mesh.triangles for mesh in written.meshes.values())
    size = f'{len(written.models)} models, {len(written.meshes)} meshes, {triangles} triangles'
    of_meshes = ', '.join([size, *slowest])
    return [
        Row('first load of a home with an H1', 's', first, bound=180.0, limit='at most', note=of_meshes),
        Row('second load of a home with an H1', 's', second, bound=5.0, limit='at most', note='with the cache on disk'),
        Row('geoms of a home', 'geoms', scene.model.ngeom, note=f'{collide} of them collide'),
    ]


def _memory(written: Home, quick: bool) -> list[Row]:
    more = 2 if quick else 16
    of_one, of_each = 'memory of the process with 1 env of a home', f'memory of each of {more} more envs of a home'
    if importlib.util.find_spec('psutil') is None:
        return [Row(what=what, unit='MB', note='skipped: pip install psutil') for what in (of_one, of_each)]
    with closing(Env(_config(written, 1))) as env:
        env.reset()
        env.step([{}])
        one = _resident()
    with closing(Env(_config(written, 1 + more))) as env:
        env.reset()
        env.step([{}] * env.env_num)
        many = _resident()
    return [
        Row(of_one, 'MB', one, bound=2000.0, limit='at most'),
        Row(of_each, 'MB', (many - one) / more, bound=20.0, limit='at most'),
    ]


def _step(written: Home, quick: bool) -> Row:
    env_num, rounds = (2, 1) if quick else (8, 12)
    configs = {'home': _config(written, env_num), 'plane': h1_config(env_num, [_PLANE])}
    with closing(Env(configs['home'])) as in_home, closing(Env(configs['plane'])) as on_plane:
        envs = {'home': in_home, 'plane': on_plane}
        env_ids = np.arange(env_num)

        def reset() -> None:
            for env in envs.values():
                env.reset()

        def world_step(env: Env) -> Step:
            return lambda k: env.runner.world.step(env_ids)

        contenders = {name: world_step(env) for name, env in envs.items()}
        result = race(contenders, reset, rounds=rounds, steps=_STEPS, turn=10)
    return Row(
        what=f'{env_num} H1, each in a home, vs on the empty plane, world.step only',
        unit='env steps/s',
        ours=env_num / result.median('home'),
        reference=env_num / result.median('plane'),
        ratio=result.speed('home', 'plane'),
        bound=0.5,
    )


def _config(written: Home, env_num: int) -> Config:
    x, y, _ = written.start
    return h1_config(env_num, [written.navigation], x, y)


def _resident() -> float:
    """Memory of this process [MB]."""
    import psutil

    return psutil.Process().memory_info().rss / 1e6


@contextmanager
def _slowest_mesh() -> Iterator[list[str]]:
    """A list that gets a text about the mesh whose colliders take longest, once meshes are decomposed."""
    found: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.msg == DECOMPOSED:
                found.append(record.getMessage().partition('; ')[2])

    listener, level = Listener(), log.level
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    try:
        yield found
    finally:
        log.removeHandler(listener)
        log.setLevel(level)
