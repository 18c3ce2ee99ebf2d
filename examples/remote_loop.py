"""Jetbots drive to their goals in a simulator behind HTTP, ten steps a call, by a rule of one line.

Without `--url` the example starts the server itself; with it, start one before:
`internutopia init served.yaml --from served`, then `internutopia serve served.yaml`.
"""

import argparse
from contextlib import nullcontext

import numpy as np

from internutopia.cli.demo import demo_file
from internutopia.remote import create_vectorized_env, local_server

SERVED = demo_file('served')
LEFT, AHEAD, RIGHT = range(3)

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--url', help='of a server that runs already')
parser.add_argument('--token', help='of its user')
parser.add_argument('--envs', type=int, default=4)
parser.add_argument('--calls', type=int, default=80)
args = parser.parse_args()

reached = ends = 0
with (
    nullcontext(args.url) if args.url else local_server(SERVED) as url,
    create_vectorized_env(args.envs, step_size=10, user_token=args.token, base_url=url) as env,
):
    latest, infos = env.reset(seed=0)
    for _ in range(args.calls):
        to_the_left = latest[:, 2]  # sine of the bearing of the goal
        actions = np.where(to_the_left > 0.2, LEFT, np.where(to_the_left < -0.2, RIGHT, AHEAD))
        observations, rewards, terminateds, truncateds, infos = env.step(actions)
        latest = np.stack([seen[-1] for seen in observations])
        ended = env.get_terminated_env_indices()
        if ended:
            reached += int(terminateds[ended].sum())
            ends += len(ended)
            latest[ended], _ = env.reset_specific_envs(ended)

print(f'{ends} episodes, {reached} of them ended at the goal')
assert reached > 0.8 * ends > 0
