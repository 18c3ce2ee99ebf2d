"""Stable-Baselines3's PPO learns to balance a pole on a cart, in 16 envs.

`pip install 'internutopia[rl]'` brings Stable-Baselines3.
"""

import argparse

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.tasks import cart_pole
from internutopia_extension import import_extensions

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--steps', type=int, default=40_000, help='env steps, all envs together')
parser.add_argument('--envs', type=int, default=16)
parser.add_argument('--seed', type=int, default=0)
args = parser.parse_args()

torch.set_num_threads(1)
import_extensions()
envs = SB3VecEnv(cart_pole.config(args.envs, args.seed))
model = PPO('MlpPolicy', envs, n_steps=64, batch_size=256, learning_rate=1e-3, gamma=0.98, seed=args.seed, device='cpu')


def average_length() -> float:
    """Mean number of steps of an episode without exploration."""
    _, lengths = evaluate_policy(model, envs, n_eval_episodes=args.envs, return_episode_rewards=True)
    return float(np.mean(lengths))


before = average_length()
model.learn(args.steps)
after = average_length()
envs.close()

print(f'the pole stays up for {before:.0f} steps before and {after:.0f} of 500 steps after training')
assert before < 100
assert args.steps < 40_000 or after > 400
