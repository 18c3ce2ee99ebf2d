"""List API: env steps of `vec_env.Env` against bare `Batch.step` on the same model, states and targets."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import SUBSTEPS, BareBatch, h1_actions, h1_config, h1_targets, write_scenes
from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots.h1 import joint_controller


def list_api(quick: bool) -> list[Row]:
    """`vec_env.Env` against the engine alone."""
    env_num, rounds, steps = (16, 1, 20) if quick else (64, 16, 100)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Env(h1_config(env_num, write_scenes(Path(folder), 1, obstacles=0)))) as env,
    ):
        env.reset()
        targets = h1_targets(env, steps)
        actions = h1_actions(targets)
        bare = BareBatch(env.runner.world, SUBSTEPS, joint_controller.joint_names)

        def reset() -> None:
            env.reset()
            bare.reset()

        contenders = {'ours': lambda k: env.step(actions[k]), 'bare': lambda k: bare.step(targets[k])}
        result = race(contenders, reset, rounds=rounds, steps=steps, turn=10)
        bare.check_same_physics()
    return [
        Row(
            what=f'list API, {env_num} envs, H1, joint control, {SUBSTEPS} substeps, vs bare Batch.step',
            unit='env steps/s',
            ours=env_num / result.median('ours'),
            reference=env_num / result.median('bare'),
            ratio=result.speed('ours', 'bare'),
            bound=0.70,
            note=f'{bare.threads} threads each; states equal to the bit at the end',
        )
    ]
