"""Large USD stages: processor time of loading them first, and again from the cache on disk."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.large_stages import write_ants, write_tea_room
from benchmarks.rows.cache import cache_at
from internutopia.bench.measure import Row
from internutopia.config.simulator import ContactCfg
from internutopia.model.scene_cache import SceneCache, SceneFiles
from internutopia.model.spec import SceneSpec


def large(quick: bool) -> list[Row]:
    """Seconds of one core, without the processes of CoACD; small stages in quick mode."""
    meshes, robots = (8, 4) if quick else (524, 64)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tea_room(folder / 'hulls.usdc', meshes, 2480 * meshes, approximation='convexHull')
        write_ants(folder / 'ants.usda', robots)
        with cache_at(folder / 'cache'):
            return [
                *_loads(f'{meshes} meshes of {2480 * meshes} triangles, as hulls', folder / 'hulls.usdc'),
                *_loads(f'{robots} articulated robots in one stage', folder / 'ants.usda'),
            ]


def _loads(what: str, stage: Path) -> list[Row]:
    def load() -> float:
        begin = time.process_time()
        SceneCache(files=SceneFiles()).get(SceneSpec(asset=str(stage)), 1 / 240, ContactCfg())
        return time.process_time() - begin

    first, second = load(), load()
    return [
        Row(f'first load of {what}', 's', first, bound=60.0, limit='at most', note='processor time'),
        Row(f'second load of {what}', 's', second, bound=5.0, limit='at most', note='processor time, cache on disk'),
    ]
