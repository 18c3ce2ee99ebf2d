"""Stable-Baselines3's PPO learns to balance a pole on a cart, in 16 envs.

`pip install -e '.[rl]'` brings Stable-Baselines3.
"""

import argparse
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from internutopia.rl.sb3 import SB3VecEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

STEPS = 60_000
SETTINGS: dict[str, Any] = {
    'n_steps': 64,
    'batch_size': 256,
    'learning_rate': 2e-3,
    'gamma': 0.98,
    'policy_kwargs': {'log_std_init': -0.5},
}


def train(steps: int = STEPS, env_num: int = 16, seed: int = 0) -> tuple[PPO, float, float]:
    """Train for so many env steps, all envs together.

    Returns:
        The model, and how long its episodes last on average before and after training, without exploration [steps].
    """
    torch.set_num_threads(1)  # networks are small: leave the cores to physics
    import_extensions()
    envs = SB3VecEnv(cart_pole.config(env_num, seed))
    model = PPO('MlpPolicy', envs, seed=seed, device='cpu', **SETTINGS)
    before = average_length(model)
    model.learn(steps)
    after = average_length(model)
    envs.close()
    return model, before, after


def average_length(model: PPO) -> float:
    """Mean number of steps of an episode without exploration, one episode in each env."""
    envs = model.get_env()
    assert envs is not None
    _, lengths = evaluate_policy(model, envs, n_eval_episodes=envs.num_envs, return_episode_rewards=True)
    return float(np.mean(lengths))


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--steps', type=int, default=STEPS, help='env steps, all envs together')
    parser.add_argument('--envs', type=int, default=16)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()

    _, before, after = train(args.steps, args.envs, args.seed)
    print(f'the pole stays up for {before:.0f} steps before and {after:.0f} of 500 steps after training')
    assert before < 100
    assert args.steps < STEPS or after == 500
