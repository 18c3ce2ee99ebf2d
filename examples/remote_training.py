"""A linear policy learns to drive Jetbots to their goals: policy gradients, with the simulator behind HTTP.

Without `--url` the example starts the server itself; with it, start one before:
`internutopia init served.yaml --from served`, then `internutopia serve served.yaml`.
"""

import argparse
from contextlib import closing, nullcontext

import numpy as np

from internutopia.cli.demo import demo_file
from internutopia.remote import VectorEnv, local_server

SERVED = demo_file('served')
ROLLOUT = 15  # calls between two updates
GAMMA = 0.9  # per call
RATE = 5.0

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--url', help='of a server that runs already')
parser.add_argument('--token', help='of its user')
parser.add_argument('--envs', type=int, default=32)
parser.add_argument('--updates', type=int, default=25)
args = parser.parse_args()


def probabilities(obs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of each choice, `(n, 3)`."""
    scores = np.exp(obs @ weights)
    return scores / scores.sum(axis=-1, keepdims=True)


rng = np.random.default_rng(0)
progress: list[float] = []
with (
    nullcontext(args.url) if args.url else local_server(SERVED) as url,
    closing(VectorEnv(args.envs, url, args.token, step_size=5, autoreset_mode='SameStep')) as envs,
):
    weights = np.zeros((9, 3))
    obs, _ = envs.reset(seed=0)
    for _ in range(args.updates):
        rollout = []
        for _ in range(ROLLOUT):
            chances = probabilities(obs, weights)
            actions = (rng.random((args.envs, 1)) > chances.cumsum(axis=-1)[:, :-1]).sum(axis=-1)
            seen = obs
            obs, rewards, terminated, truncated, _ = envs.step(actions)
            rollout.append((seen, chances, actions, rewards, terminated | truncated))
        progress.append(float(np.mean([rewards.mean() for *_, rewards, _ in rollout])))
        to_go, gradient = np.zeros(args.envs), np.zeros_like(weights)
        returns = []
        for *_, rewards, ended in reversed(rollout):
            to_go = rewards + GAMMA * np.where(ended, 0.0, to_go)
            returns.append(to_go)
        mean, std = np.mean(returns), np.std(returns)
        for (seen, chances, actions, *_), to_go in zip(rollout, reversed(returns), strict=True):
            gradient += seen.T @ ((np.eye(3)[actions] - chances) * ((to_go - mean) / std)[:, None])
        weights += RATE * gradient / (ROLLOUT * args.envs)

before, after = np.mean(progress[:3]), np.mean(progress[-3:])
print(f'reward per call: {before:.4f} in the first, {after:.4f} in the last updates')
assert before < 0.02
assert args.updates < 25 or after > 0.04
