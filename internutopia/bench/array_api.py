"""Array API: a learner's step against bare `Batch.step`, and its share in training."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import SUBSTEPS, BareBatch, h1_config, h1_learning, write_scenes
from internutopia.rl import VectorEnv
from internutopia_extension.configs.robots.h1 import joint_controller


def array_api(quick: bool) -> list[Row]:
    """`rl.VectorEnv` against the engine alone, and what that means to a learner."""
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
    ours, physics = result.median('ours'), result.median('bare')
    step = Row(
        what=f'array API, {env_num} envs, H1, joint control, {SUBSTEPS} substeps, vs bare Batch.step',
        unit='env steps/s',
        ours=env_num / ours,
        reference=env_num / physics,
        ratio=result.speed('ours', 'bare'),
        bound=0.90,
        note=f'{bare.threads} threads each; states equal to the bit at the end',
    )
    what = 'array API, share of a rollout step spent outside physics and policy'
    if 'network' not in contenders:
        return [step, Row(what, '%', note='skipped: pip install torch')]
    share = 100.0 * max(0.0, ours - physics) / (ours + result.median('network'))
    return [step, Row(what, '%', ours=share, note='policy of two layers of 64')]


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
