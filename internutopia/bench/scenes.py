"""What different scenes cost: 16 scenes side by side against as many envs of one of them."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import SUBSTEPS, h1_actions, h1_config, h1_targets, mujoco_world, write_scenes
from internutopia.core.vec_env import Env

# Scenes that differ in sizes and positions can share a batch; those that differ in kinds of shapes cannot
_KINDS = {'same structure': ('box',), 'own structures': ('box', 'cylinder', 'ellipsoid')}


def different_scenes(quick: bool) -> list[Row]:
    """Whole env steps and physics alone, for scenes that can share a batch and for scenes that cannot."""
    scene_num, env_num, rounds, steps = (4, 8, 1, 20) if quick else (16, 64, 8, 100)
    rows: list[Row] = []
    for kind, shapes in _KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            scenes = write_scenes(Path(folder), scene_num, shapes=shapes)
            with closing(Env(h1_config(env_num, scenes))) as mixed, closing(Env(h1_config(env_num, scenes[:1]))) as one:
                rows += _compare(kind, scene_num, mixed, one, rounds, steps)
    return rows


def _compare(kind: str, scene_num: int, mixed: Env, one: Env, rounds: int, steps: int) -> list[Row]:
    def restart() -> None:
        mixed.reset()
        one.reset()

    restart()
    actions = h1_actions(h1_targets(one, steps))
    env_ids = np.arange(one.env_num)
    doors = {
        'list front door': lambda env: lambda k: env.step(actions[k]),
        'world.step only': lambda env: lambda k: env.runner.world.step(SUBSTEPS, env_ids),
    }
    rows: list[Row] = []
    for door, step in doors.items():
        result = race({'mixed': step(mixed), 'one': step(one)}, restart, rounds=rounds, steps=steps, turn=10)
        rows.append(
            Row(
                what=f'{scene_num} scenes ({kind}) x {one.env_num // scene_num} envs vs {one.env_num} of one, {door}',
                unit='env steps/s',
                ours=one.env_num / result.median('mixed'),
                reference=one.env_num / result.median('one'),
                ratio=result.speed('mixed', 'one'),
                bound=0.80,
                note=f'{len(mujoco_world(mixed).groups)} batches',
            )
        )
    return rows
