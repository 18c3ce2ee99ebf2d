"""Different scenes, and what they cost: 16 scenes side by side against as many envs of one of them."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from internutopia.bench.measure import Row, Step, race
from internutopia.bench.workloads import h1_actions, h1_config, h1_targets, mujoco_world, write_scenes
from internutopia.core.vec_env import Env


def different_scenes(quick: bool) -> list[Row]:
    """Whole env steps, and physics alone."""
    scene_num, env_num, rounds, steps = (4, 8, 1, 20) if quick else (16, 64, 12, 100)
    with tempfile.TemporaryDirectory() as folder:
        scenes = write_scenes(Path(folder), scene_num)
        with closing(Env(h1_config(env_num, scenes))) as mixed, closing(Env(h1_config(env_num, scenes[:1]))) as one:
            one.reset()
            actions = h1_actions(h1_targets(one, steps))
            env_ids = np.arange(env_num)

            def reset() -> None:
                mixed.reset()
                one.reset()

            def env_step(env: Env) -> Step:
                return lambda k: env.step(actions[k])

            def world_step(env: Env) -> Step:
                return lambda k: env.runner.world.step(env_ids)

            rows: list[Row] = []
            for kind, step in {'list API': env_step, 'world.step only': world_step}.items():
                contenders = {'mixed': step(mixed), 'one': step(one)}
                result = race(contenders, reset, rounds=rounds, steps=steps, turn=10)
                rows.append(
                    Row(
                        what=f'{scene_num} scenes x {env_num // scene_num} envs vs {env_num} envs of one scene, {kind}',
                        unit='env steps/s',
                        ours=env_num / result.median('mixed'),
                        reference=env_num / result.median('one'),
                        ratio=result.speed('mixed', 'one'),
                        bound=0.80,
                        note=f'H1, {len(mujoco_world(mixed.runner.world).env_batches)} batches',
                    )
                )
    return rows
