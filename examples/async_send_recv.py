"""Random search finds a linear policy that balances a pole, in 64 envs that do not wait for each other.

Each env tries a gain vector for one episode; the best ones are the source of the next (cross-entropy method). While
the envs of one group are at work the search evaluates those of another.
"""

import argparse

import numpy as np

from internutopia.rl.send_recv import AsyncEnvs
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

ELITE = 16  # gain vectors that the next ones are sampled around
POPULATION = 64  # episodes between two updates

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--steps', type=int, default=150_000, help='env steps, all envs together')
parser.add_argument('--envs', type=int, default=64)
parser.add_argument('--batch', type=int, default=16, help='envs per group')
parser.add_argument('--seed', type=int, default=0)
args = parser.parse_args()

import_extensions()
envs = AsyncEnvs(cart_pole.config(seed=args.seed), args.envs, args.batch)
rng = np.random.default_rng(args.seed)
mean, std = np.zeros(4), np.ones(4)  # of gains for position, angle and their rates
gains = rng.normal(mean, std, (args.envs, 4))
trials: list[tuple[int, np.ndarray]] = []
averages: list[float] = []

envs.async_reset(seed=args.seed)
for _ in range(args.steps // args.batch):
    obs, _, terminated, truncated, info = envs.recv()
    env_ids = info['env_id']
    for row in np.flatnonzero(terminated | truncated):
        trials.append((info['episode_length'][row], gains[env_ids[row]].copy()))
        gains[env_ids[row]] = rng.normal(mean, std)
    if len(trials) >= POPULATION:
        averages.append(float(np.mean([length for length, _ in trials])))
        best = np.array([gain for _, gain in sorted(trials, key=lambda trial: -trial[0])[:ELITE]])
        mean, std = best.mean(axis=0), best.std(axis=0) + 0.05
        trials.clear()
    actions = np.clip((obs * gains[env_ids]).sum(axis=-1, keepdims=True), -1.0, 1.0)
    envs.send(actions, env_ids)
envs.close()

print(f'the pole stays up for {averages[0]:.0f} steps at first and for {averages[-1]:.0f} of 500 steps in the end')
assert averages[0] < 100
assert args.steps < 150_000 or averages[-1] > 200
