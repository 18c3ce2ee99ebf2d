"""A cross-entropy search finds a linear controller for a pole on a cart; every env tries one.

Nothing leaves the device before the end. On a GPU: `python examples/search_on_device.py --device cuda:0 --envs 4096`.
Without one, Warp's CPU device does it, slowly. `pip install -e '.[gpu]'` brings what it needs.
"""

import argparse
from typing import Any

import torch

from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

STEPS = 60  # of a trial, 20 ms each
START = 0.15  # how far from upright and at rest poles begin [m, rad, m/s, rad/s]


def search(device: str = 'cpu', env_num: int = 48, rounds: int = 3, seed: int = 0) -> tuple[torch.Tensor, list[float]]:
    """Search for weights `(4,)` of cart position, pole angle and their velocities.

    Returns:
        The weights, and for how many steps poles stayed up in each round, on average.
    """
    import_extensions()
    config = cart_pole.config(env_num, seed, start=START)
    config.simulator.backend, config.simulator.device = 'mujoco_warp', device
    envs: Any = VectorEnv(config, arrays='torch', autoreset_mode='SameStep')  # arrays are tensors
    torch.manual_seed(seed)
    mean, std = torch.zeros(4, device=envs.device), torch.full((4,), 3.0, device=envs.device)
    averages = []
    for _ in range(rounds):
        weights = mean + std * torch.randn(env_num, 4, device=envs.device)
        obs, _ = envs.reset()
        up = torch.ones(env_num, dtype=torch.bool, device=envs.device)
        score = torch.zeros(env_num, device=envs.device)
        for _ in range(STEPS):
            action = (weights * obs).sum(-1, keepdim=True).clip(-1.0, 1.0)
            obs, _, terminated, truncated, _ = envs.step(action)
            up = up & ~(terminated | truncated)
            score += up * (1.0 - obs[:, 1].abs())
        best = weights[score.topk(env_num // 6).indices]
        mean, std = best.mean(0), best.std(0)
        averages.append(score)
    envs.close()
    return mean, [float(score.mean()) for score in averages]  # only here the host waits


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--envs', type=int, default=48)
    arguments = parser.parse_args()
    weights, averages = search(arguments.device, arguments.envs)
    print('steps that poles stayed up:', ', '.join(f'{average:.1f}' for average in averages))
    print('weights:', [round(weight, 2) for weight in weights.tolist()])
    assert averages[-1] > 1.4 * averages[0]
