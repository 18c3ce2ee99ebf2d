"""Jetbots drive to goals of their own in two worker processes that do not wait for each other.

The same script runs on a cluster: give it the address of the head and more processes.
"""

import argparse

import numpy as np

from internutopia import Config, Env, RayDistributionCfg, SimConfig
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_to_point_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--processes', type=int, default=2)
parser.add_argument('--head-address', help='of a cluster to join; without, this machine alone')
args = parser.parse_args()

jetbot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_to_point_cfg])
angles = np.linspace(-np.pi, np.pi, 24, endpoint=False)
goals = [(0.5 * np.cos(angle), 0.5 * np.sin(angle), 0.0) for angle in angles]  # m, env frame
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, substeps=4),
    env_num=4,
    task_configs=[
        FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[jetbot], max_steps=300) for _ in goals
    ],
    metrics_save_path='none',
)

import_extensions()
env = Env(config.distribute(RayDistributionCfg(proc_num=args.processes, head_address=args.head_address)))
env.reset()
arrived = 0


def send(env_ids: list[int]) -> None:
    """Let the Jetbots in these envs drive on to the goals of their episodes."""
    running = {i: env.active_episodes[i].id for i in env_ids if i in env.active_episodes}
    env.send([{'jetbot': {'move_to_point': [goals[episode]]}} for episode in running.values()], list(running))


send(list(range(env.num_envs)))
while env.simulation_app.is_running():
    obs, _, terminated, truncated, _, env_ids = env.recv()
    ended = []
    for i, seen, done, cut in zip(env_ids, obs, terminated, truncated, strict=True):
        if done or cut:
            arrived += seen['jetbot']['controllers']['move_to_point']['finished']
            ended.append(i)
    env.reset(ended)
    send(env_ids)
env.close()

print(f'{arrived} of {len(goals)} Jetbots reached their goals')
assert arrived == len(goals)
