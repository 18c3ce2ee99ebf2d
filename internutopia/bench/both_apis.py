"""What the front doors cost: env steps against bare `Batch.step` on the same model, states and targets."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
from mujoco.batch import Batch

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import SUBSTEPS, h1_actions, h1_config, h1_targets, mujoco_world, write_scenes
from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots.h1 import joint_controller


def list_front_door(quick: bool) -> list[Row]:
    """`vec_env.Env` against the engine alone."""
    env_num, rounds, steps = (16, 1, 20) if quick else (64, 16, 100)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Env(h1_config(env_num, write_scenes(Path(folder), 1, obstacles=0)))) as env,
    ):
        env.reset()
        targets = h1_targets(env, steps)
        actions = h1_actions(targets)
        world = mujoco_world(env.runner.world)
        live, _ = world.batch(0)
        model = live.model
        bare = Batch(model, env_num, live.nthread)
        ctrl = bare.bind('ctrl')
        columns = [model.actuator(f'robots/h1/{joint}/position').id for joint in joint_controller.joint_names]

        def restart() -> None:
            env.reset()
            bare.state[:] = world.batch(0)[0].state

        def bare_step(k: int) -> None:
            ctrl[:, columns] = targets[k]
            bare.step(nstep=SUBSTEPS)

        result = race(
            {'ours': lambda k: env.step(actions[k]), 'bare': bare_step}, restart, rounds=rounds, steps=steps, turn=10
        )
        if not np.array_equal(bare.state, world.batch(0)[0].state):
            raise RuntimeError('the env and the bare batch did not do the same physics: their times say nothing')
    return [
        Row(
            what=f'list front door, {env_num} envs, H1, joint control, {SUBSTEPS} substeps, vs bare Batch.step',
            unit='env steps/s',
            ours=env_num / result.median('ours'),
            reference=env_num / result.median('bare'),
            ratio=result.speed('ours', 'bare'),
            bound=0.70,
            note=f'{bare.nthread} threads each; states equal to the bit at the end',
        )
    ]
