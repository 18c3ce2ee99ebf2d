"""What the array front door costs: a learner's step against bare `Batch.step`, its share in training, and restarts."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import SUBSTEPS, h1_config, h1_learning, mujoco_world, write_scenes
from internutopia.rl import VectorEnv
from internutopia_extension.configs.robots.h1 import joint_controller


def array_front_door(quick: bool) -> list[Row]:
    """`rl.VectorEnv` against the engine alone, and what that means to a learner."""
    env_num, rounds, steps = (16, 1, 20) if quick else (256, 8, 100)
    with tempfile.TemporaryDirectory() as folder, closing(_h1_envs(Path(folder), env_num)) as envs:
        envs.reset()
        actions = _h1_actions(envs, steps)
        world = mujoco_world(envs.core.runner.world)
        live, _ = world.batch(0)
        model = live.model
        bare = Batch(model, env_num, live.nthread)
        ctrl = bare.bind('ctrl')
        columns = [model.actuator(f'robots/h1/{joint}/position').id for joint in joint_controller.joint_names]

        def restart() -> None:
            envs.reset()
            bare.state[:] = world.batch(0)[0].state

        def bare_step(k: int) -> None:
            ctrl[:, columns] = actions[k]
            bare.step(nstep=SUBSTEPS)

        contenders: dict[str, Callable[[int], object]] = {'ours': lambda k: envs.step(actions[k]), 'bare': bare_step}
        if importlib.util.find_spec('torch') is not None:
            contenders['network'] = _policy(envs)
        result = race(contenders, restart, rounds=rounds, steps=steps, turn=5)
        if not np.array_equal(bare.state, world.batch(0)[0].state):
            raise RuntimeError('the envs and the bare batch did not do the same physics: their times say nothing')
    ours, physics = result.median('ours'), result.median('bare')
    front_door = Row(
        what=f'array front door, {env_num} envs, H1, joint control, {SUBSTEPS} substeps, vs bare Batch.step',
        unit='env steps/s',
        ours=env_num / ours,
        reference=env_num / physics,
        ratio=result.speed('ours', 'bare'),
        bound=0.90,
        note=f'{bare.nthread} threads each; states equal to the bit at the end',
    )
    what = 'array front door, share of a rollout step spent outside physics and policy'
    if 'network' not in contenders:
        return [front_door, Row(what, '%', note='skipped: pip install torch')]
    share = 100.0 * max(0.0, ours - physics) / (ours + result.median('network'))
    return [front_door, Row(what, '%', ours=share, note='policy of two layers of 64')]


def restarts(quick: bool) -> list[Row]:
    """Steps in which some envs start anew against steps in which none does."""
    env_num, rounds, length = (16, 1, 4) if quick else (256, 16, 32)
    starting = env_num // length
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(_h1_envs(Path(folder), env_num, length - 1)) as staggered,  # a step more for the restart
        closing(_h1_envs(Path(folder), env_num)) as endless,
    ):
        endless.reset()
        actions = _h1_actions(endless, length)
        staggered.reset()
        for k in range(length):
            staggered.reset(options={'reset_mask': np.arange(env_num) // starting == k})
            staggered.step(actions[k])
        contenders = {'with': lambda k: staggered.step(actions[k]), 'without': lambda k: endless.step(actions[k])}
        result = race(contenders, endless.reset, rounds=rounds, steps=length, turn=4)
    return [
        Row(
            what=f'array front door, step in which {starting} of {env_num} envs restart vs a step without',
            unit='ms',
            ours=1e3 * result.median('with'),
            reference=1e3 * result.median('without'),
            ratio=result.speed('without', 'with'),
            note='ratio of times',
        )
    ]


def _h1_envs(folder: Path, env_num: int, max_episode_steps: int | None = None) -> VectorEnv:
    config = h1_config(env_num, write_scenes(folder, 1, obstacles=0))
    config.task_configs[0].max_episode_steps = max_episode_steps
    return VectorEnv(config, h1_learning())


def _h1_actions(envs: VectorEnv, steps: int) -> NDArray[np.float32]:
    """Joint targets `(steps, env_num, 19)` [rad] that wander around the home pose."""
    subset = envs.core.controller.get_joint_subset()
    assert subset is not None
    noise = np.random.default_rng(0).normal(0.0, 0.05, (steps, envs.num_envs, subset.num_joints))
    return (envs.core.state.home[subset.joint_indices] + noise).astype(np.float32)


def _policy(envs: VectorEnv) -> Callable[[int], Any]:
    """A small network from observations to actions, numpy to numpy."""
    import torch

    obs = envs.core.compute_observations()
    sizes = obs.shape[1], 64, 64, envs.core.state.actions.shape[1]
    layers: list[torch.nn.Module] = []
    for size_in, size_out in zip(sizes, sizes[1:], strict=False):
        layers += [torch.nn.Linear(size_in, size_out), torch.nn.Tanh()]
    network = torch.nn.Sequential(*layers)

    def forward(_: int) -> Any:
        with torch.inference_mode():
            return network(torch.from_numpy(obs)).numpy()

    return forward
