"""PPO of Stable-Baselines3 by the settings of CleanRL, for comparison with published returns.

    python benchmarks/published.py Ant              # InternUtopia/Ant-v0
    python benchmarks/published.py Ant --gymnasium  # Gymnasium's Ant-v5, with the same observations and rewards

Each rollout prints a line of JSON with the mean return of the episodes that ended in it. The settings are those of
CleanRL's `ppo_continuous_action.py`; what Stable-Baselines3 does otherwise is that the value of the last observation
counts where an episode was truncated.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from typing_extensions import override

from internutopia.rl.sb3 import SB3VecEnv

SETTINGS: dict[str, Any] = {
    'n_steps': 2048,
    'batch_size': 64,  # 32 minibatches
    'n_epochs': 10,
    'learning_rate': lambda left: 3e-4 * left,
    'gamma': 0.99,
    'gae_lambda': 0.95,
    'clip_range': 0.2,
    'clip_range_vf': 0.2,
    'vf_coef': 0.25,  # CleanRL has 0.5, of half the squared error
    'max_grad_norm': 0.5,
}
_NO_CONTACTS = {'include_cfrc_ext_in_observation': False, 'contact_cost_weight': 0.0}
SAME: dict[str, dict[str, Any]] = {  # options that make Gymnasium's observations and rewards those of our ids
    'Ant': _NO_CONTACTS,
    'Humanoid': _NO_CONTACTS
    | {f'include_{name}_in_observation': False for name in ('cinert', 'cvel', 'qfrc_actuator')},
}


class _Returns(BaseCallback):
    """Prints the mean return and length of the episodes that end in a rollout, and of all in the last tenth."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps
        self._ended: list[dict[str, Any]] = []
        self.last: list[float] = []  # returns in the last tenth of the training

    @override
    def _on_step(self) -> bool:
        self._ended += [info['episode'] for info in self.locals['infos'] if 'episode' in info]
        return True

    @override
    def _on_rollout_end(self) -> None:
        if self._ended:
            returns, lengths = ([episode[key] for episode in self._ended] for key in 'rl')
            figures = {
                'return': round(np.mean(returns), 2),
                'length': round(np.mean(lengths), 1),
                'episodes': len(returns),
            }
            print(
                json.dumps({'steps': self.num_timesteps, 'cpu_s': round(time.process_time(), 1)} | figures), flush=True
            )
            if self.num_timesteps > 0.9 * self._steps:
                self.last += returns
        self._ended = []


def make(name: str, seed: int, own: bool) -> VecEnv:
    """Return one env, whose observations and rewards are normalized and clipped."""
    if own:
        envs: VecEnv = SB3VecEnv(
            gymnasium.make_vec(f'InternUtopia/{name}-v0', 1, threads=1, seed=seed, autoreset_mode='SameStep').unwrapped
        )
    else:
        envs = make_vec_env(f'{name}-v5', 1, seed=seed, env_kwargs=SAME.get(name, {}))
    return VecNormalize(envs, gamma=SETTINGS['gamma'])


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('name', choices=['HalfCheetah', 'Hopper', 'Walker2d', 'Ant', 'Humanoid'])
    parser.add_argument('--gymnasium', action='store_true')
    parser.add_argument('--steps', type=int, default=1_000_000)
    parser.add_argument('--seed', type=int, default=1)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    envs = make(arguments.name, arguments.seed, own=not arguments.gymnasium)
    progress = _Returns(arguments.steps)
    model = PPO('MlpPolicy', envs, seed=arguments.seed, device='cpu', **SETTINGS)
    model.learn(arguments.steps, callback=progress)
    envs.close()
    print(
        json.dumps(
            vars(arguments) | {'final_return': round(np.mean(progress.last), 1), 'std': round(np.std(progress.last), 1)}
        )
    )
