"""Stable-Baselines3's PPO learns to reach a red block that it sees through a camera of 84 x 84 pixels.

`pip install -e '.[rl]'` brings Stable-Baselines3.
"""

import argparse
from typing import Any

import torch
from stable_baselines3 import PPO

from internutopia.rl.sb3 import SB3VecEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import reach_block

STEPS = 600_000
SETTINGS: dict[str, Any] = {
    'n_steps': 64,
    'batch_size': 512,
    'n_epochs': 4,
    'learning_rate': 3e-4,
    'gamma': 0.97,
    'policy_kwargs': {'log_std_init': -1.0, 'net_arch': [128, 64]},
}


def train(steps: int = STEPS, env_num: int = 64, seed: int = 0, **options: Any) -> tuple[PPO, float, float]:
    """Train for so many env steps, all envs together; `options` are of the task.

    Returns:
        The model, and the share of episodes that reach the block before and after training, without exploration.
    """
    torch.set_num_threads(1)  # leave the cores to physics and pictures
    import_extensions()
    envs = SB3VecEnv(reach_block.config(env_num, seed, **options))
    model = PPO('MultiInputPolicy', envs, seed=seed, device='cpu', **SETTINGS)
    before = success_rate(model, envs)
    model.learn(steps)
    after = success_rate(model, envs)
    envs.close()
    return model, before, after


def success_rate(model: PPO, envs: SB3VecEnv) -> float:
    """Share of episodes that reach the block without exploration, one episode in each env."""
    observations: Any = envs.reset()
    first: list[bool | None] = [None] * envs.num_envs
    while None in first:
        actions, _ = model.predict(observations, deterministic=True)
        observations, _, dones, infos = envs.step(actions)
        for i in range(envs.num_envs):
            if dones[i] and first[i] is None:
                first[i] = not infos[i]['TimeLimit.truncated']
    return sum(map(bool, first)) / envs.num_envs


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--steps', type=int, default=STEPS, help='env steps, all envs together')
    parser.add_argument('--envs', type=int, default=64)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()

    _, before, after = train(args.steps, args.envs, args.seed)
    print(f'{before:.0%} of the episodes reach the block before training, {after:.0%} after it')
