"""Both APIs against bare `Batch.step` on the same model, states and targets; the share of the array API in training."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.bench.measure import Race, Row, race
from internutopia.bench.workloads import (
    SUBSTEPS,
    BareBatch,
    h1_actions,
    h1_config,
    h1_learning,
    h1_targets,
    write_scenes,
)
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia.util.imports import install_hint
from internutopia_extension.configs.robots.h1 import joint_controller


def list_api(quick: bool) -> list[Row]:
    """Measure `vec_env.Env` against the engine alone."""
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
    return [_beside_bare('list', env_num, result, 0.70, bare.threads)]


def array_api(quick: bool) -> list[Row]:
    """Measure `rl.VectorEnv` against the engine alone, and its share in a step of training."""
    env_num, rounds, steps = (16, 1, 20) if quick else (256, 8, 100)
    with tempfile.TemporaryDirectory() as folder, closing(h1_envs(Path(folder), env_num)) as envs:
        envs.reset()
        actions = h1_joint_targets(envs, steps)
        bare = BareBatch(envs.core.runner.world, SUBSTEPS, joint_controller.joint_names)

        def reset() -> None:
            envs.reset()
            bare.reset()

        contenders: dict[str, Callable[[int], object]] = {
            'ours': lambda k: envs.step(actions[k]),
            'bare': lambda k: bare.step(actions[k]),
        }
        if importlib.util.find_spec('torch') is not None:
            contenders['network'] = _policy(envs)
        result = race(contenders, reset, rounds=rounds, steps=steps, turn=5)
        bare.check_same_physics()
    step = _beside_bare('array', env_num, result, 0.90, bare.threads)
    what = 'array API, share of a rollout step spent outside physics and policy'
    if 'network' not in contenders:
        return [step, Row(what, '%', note=f'skipped: {install_hint("rl")}')]
    ours, physics = result.median('ours'), result.median('bare')
    share = 100.0 * max(0.0, ours - physics) / (ours + result.median('network'))
    return [step, Row(what, '%', ours=share, note='policy of two layers of 64')]


def _beside_bare(api: str, env_num: int, result: Race, bound: float, threads: int) -> Row:
    return Row(
        what=f'{api} API, {env_num} envs, H1, joint control, {SUBSTEPS} substeps, vs bare Batch.step',
        unit='env steps/s',
        ours=env_num / result.median('ours'),
        reference=env_num / result.median('bare'),
        ratio=result.speed('ours', 'bare'),
        bound=bound,
        note=f'{threads} threads each; states equal to the bit at the end',
    )


def h1_envs(folder: Path, env_num: int, max_episode_steps: int | None = None) -> VectorEnv:
    """Return envs with an H1 each on the empty plane, whose scene is written to a folder."""
    config = h1_config(env_num, write_scenes(folder, 1, obstacles=0))
    config.task_configs[0].max_episode_steps = max_episode_steps
    return VectorEnv(config, h1_learning())


def h1_joint_targets(envs: VectorEnv, steps: int) -> NDArray[np.float32]:
    """Return joint targets `(steps, env_num, 19)` [rad] that wander around the home pose."""
    subset = envs.core.controller.get_joint_subset()
    assert subset is not None
    noise = np.random.default_rng(0).normal(0.0, 0.05, (steps, envs.num_envs, subset.num_joints))
    return (envs.core.state.home[subset.joint_indices] + noise).astype(np.float32)


def _policy(envs: VectorEnv) -> Callable[[int], Any]:
    """Return a small network from observations to actions, numpy to numpy."""
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
