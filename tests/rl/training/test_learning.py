"""Learning libraries: both learn to balance the pole for as long as an episode lasts, by the examples' own settings."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / 'examples'
LIMIT = 500  # steps of an episode of CartPole-v0: the optimum
Policy = Callable[[np.ndarray], np.ndarray]


def train(example: str) -> tuple[Any, float, float]:
    """What `train` of an example gives: what was trained, and its mean length of an episode before and after."""
    return runpy.run_path(str(EXAMPLES / example))['train'](seed=0)


def lengths_of(policy: Policy, env_num: int = 32) -> np.ndarray:
    """Length of one episode of `InternUtopia/CartPole-v0` in each env [steps], `(env_num,)`."""
    envs: Any = gymnasium.make_vec('InternUtopia/CartPole-v0', num_envs=env_num, seed=1, threads=1)
    obs, _ = envs.reset()
    lengths, running = np.zeros(env_num, int), np.ones(env_num, bool)
    while running.any():
        obs, _, terminated, truncated, _ = envs.step(policy(obs))
        lengths += running
        running &= ~(terminated | truncated)
    envs.close()
    return lengths


@pytest.mark.nightly
def test_ppo_of_stable_baselines3() -> None:
    model, before, after = train('train_sb3.py')
    assert before < 100 and after == LIMIT
    assert lengths_of(lambda obs: model.predict(obs, deterministic=True)[0]).mean() == LIMIT


@pytest.mark.nightly
def test_ppo_of_rsl_rl() -> None:
    import torch
    from tensordict import TensorDict

    runner, before, after = train('train_rsl_rl.py')
    assert before < 100 and after == LIMIT
    mean = runner.get_inference_policy()

    def policy(obs: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return mean(TensorDict({'policy': torch.from_numpy(obs)}, batch_size=[len(obs)])).numpy()

    assert lengths_of(policy).mean() == LIMIT
