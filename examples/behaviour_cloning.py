"""Behaviour cloning in plain torch: a Franka learns from 50 recorded episodes to put a cube to its left.

An expert that follows a rule records the episodes as a dataset, a network is trained on what the dataset holds, and
then acts in 64 envs with the cube in other places.
"""

import argparse
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from internutopia import BaseTask, Config, Env, SimConfig, TaskCfg
from internutopia.recording import Dataset, Recorder
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg

EDGE = 0.04  # m
GOAL = np.array([0.4, 0.25, EDGE / 2])  # m, of the cube
LOW, HIGH = (0.35, -0.3, EDGE / 2), (0.6, 0.05, EDGE / 2)  # m, between which the cube lies at first
HOVER = 0.12  # m, the height at which the gripper moves sideways
STEPS = 300  # of an episode at most, at 15 steps per second
STRIDE = 0.018  # m, how far ahead of the gripper its target is, at most
NOISE = 0.006  # m, of the expert's targets: it then shows what to do off the straight path, too
DOWN = (0.0, 1.0, 0.0, 0.0)  # the gripper points to the floor
TIP, FINGERS, CUBE = (  # what the policy sees, as the dataset calls it
    f'franka/controllers/{arm_ik_cfg.name}/eef_position',
    f'franka/controllers/{gripper_cfg.name}/gripper_pos',
    'franka/cube_position',
)
Array = NDArray[np.floating]
Policy = Callable[[Array, Array, Array], tuple[Array, Array]]
"""From `TIP` `(n, 3)`, `FINGERS` `(n, 2)` and `CUBE` `(n, 3)` [m] to how far to move `(n, 3)` [m], and whether the
gripper opens (positive) or closes `(n, 1)`."""


class PickAndPlaceCfg(TaskCfg):
    """Config of bringing a cube to `GOAL`."""

    type: str | None = 'PickAndPlace'
    instruction: str = 'put the cube to the left of the robot'


@BaseTask.register('PickAndPlace')
class PickAndPlace(BaseTask):
    """A task whose observation has the cube. Done when it lies at its goal and the gripper has left it."""

    success = False

    def get_observations(self):
        obs = super().get_observations()
        franka = obs['franka']
        franka['cube_position'] = cube = self.objects['cube'].body.get_pose()[0]
        tip = franka['controllers'][arm_ik_cfg.name]['eef_position']
        self.success = bool(np.linalg.norm(cube - GOAL) < 0.02 and np.linalg.norm(cube - tip) > 0.08)
        return obs

    def is_done(self):
        return self.success

    def calculate_metrics(self):
        return {**super().calculate_metrics(), 'success': self.success}


def expert(tip: Array, fingers: Array, cube: Array) -> tuple[Array, Array]:
    """Act by rule: over the cube, down, close, up, over the goal, down, open, up."""
    above = np.array([0.0, 0.0, HOVER])
    over_cube = np.linalg.norm((tip - cube)[:, :2], axis=1) < 0.01
    at_cube = np.linalg.norm(tip - cube, axis=1) < 0.01
    held = at_cube & (fingers.mean(axis=1) < EDGE / 2 + 0.001)
    over_goal = np.linalg.norm((cube - GOAL)[:, :2], axis=1) < 0.01
    placed = over_goal & (cube[:, 2] < EDGE / 2 + 0.004)
    high = tip[:, 2] > HOVER - 0.03
    target = np.select(
        [column[:, None] for column in (placed, held & over_goal, held & high, held, over_cube)],
        [GOAL + above, GOAL, GOAL + above, cube + above, cube],
        cube + above - [0.0, 0.0, EDGE / 2],
    )
    return target - tip, np.where(at_cube & ~placed, -1.0, 1.0)[:, None]


def run(policy: Policy, episodes: int, seed: int, noise: float = 0.0, record: Path | None = None) -> float:
    """Act in as many envs as there are episodes, with the cube in random places; the share that succeeds."""
    random = np.random.default_rng(seed)
    franka = FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg])
    tasks: list[TaskCfg] = [
        PickAndPlaceCfg(
            scene_asset_path='scenes/empty.xml',
            robots=[franka],
            objects=[
                DynamicCubeCfg(name='cube', prim_path='/cube', position=place, scale=(EDGE, EDGE, EDGE), mass=0.1)
            ],
            max_episode_steps=STEPS,
        )
        for place in random.uniform(LOW, HIGH, (episodes, 3)).tolist()
    ]
    simulator = SimConfig(physics_dt=1 / 240, substeps=16, rendering_interval=0)
    config = Config(simulator=simulator, env_num=episodes, task_configs=tasks, seed=seed, metrics_save_path='none')
    info: list[dict[str, Any]] = []
    with closing(Env(config)) as env, ExitStack() as stack:
        if record is not None:
            stack.enter_context(Recorder(record, config, only='success')).attach(env)
        obs, _ = env.reset()
        while env.simulation_app.is_running():
            controllers = [each['franka']['controllers'] for each in obs]
            tip = np.array([each[arm_ik_cfg.name]['eef_position'] for each in controllers])
            fingers = np.array([each[gripper_cfg.name]['gripper_pos'] for each in controllers])
            cube = np.array([each['franka']['cube_position'] for each in obs])
            way, opening = policy(tip, fingers, cube)
            way *= np.minimum(1.0, STRIDE / np.linalg.norm(way, axis=1, keepdims=True))
            pose = np.column_stack([tip + way + random.normal(0.0, noise, way.shape), [DOWN] * episodes])
            actions = [{'franka': {arm_ik_cfg.name: pose[i], gripper_cfg.name: opening[i]}} for i in range(episodes)]
            obs, _, _, _, info = env.step(actions)
    return float(np.mean([each['metrics']['success'] for each in info]))


def features(tip: Array, fingers: Array, cube: Array) -> torch.Tensor:
    """Return the input of the network: lengths that matter, in units in which they are about 1."""
    relative = np.column_stack([cube - tip, GOAL - cube, tip[:, 2:]]) / 0.1
    near = np.tanh((cube - tip) / 0.01)
    return torch.tensor(np.column_stack([relative, near, fingers / 0.02]), dtype=torch.float32)


def train(dataset: Dataset, updates: int) -> nn.Module:
    """Fit a network to what the expert commanded."""
    seen: dict[str, Array] = {
        name: np.concatenate([episode.observations[name] for episode in dataset]) for name in (TIP, FINGERS, CUBE)
    }
    commanded = {
        name: np.concatenate([episode.action_rows()[f'franka/{name}'] for episode in dataset])
        for name in (arm_ik_cfg.name, gripper_cfg.name)
    }
    way = (commanded[arm_ik_cfg.name][:, :3] - seen[TIP]) / STRIDE
    inputs = features(*seen.values())
    targets = torch.tensor(np.column_stack([way, commanded[gripper_cfg.name]]), dtype=torch.float32)
    network = nn.Sequential(
        nn.Linear(inputs.shape[1], 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=updates)
    losses = []
    for _ in range(updates):
        rows = torch.randint(len(inputs), (256,))
        loss = nn.functional.mse_loss(network(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    first, last = np.mean(losses[:20]), np.mean(losses[-20:])
    print(f'{len(inputs)} frames; loss {first:.3f} at first, {last:.3f} at last')
    assert last < 0.7 * first
    return network


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--folder', type=Path, default=Path('out/pick_and_place'), help='of the dataset, which is made')
parser.add_argument('--episodes', type=int, default=50)
parser.add_argument('--envs', type=int, default=64, help='in which the network acts')
parser.add_argument('--updates', type=int, default=5000)
parser.add_argument('--seed', type=int, default=0)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(args.seed)
import_extensions()
share = run(expert, args.episodes, args.seed, NOISE, args.folder)
dataset = Dataset(args.folder)
print(f'the expert succeeded in {share:.2f} of {args.episodes} episodes; {len(dataset)} are in {args.folder}')
network = train(dataset, args.updates)


def learned(tip: Array, fingers: Array, cube: Array) -> tuple[Array, Array]:
    """Act by the network."""
    with torch.no_grad():
        outputs = network(features(tip, fingers, cube)).numpy()
    return outputs[:, :3] * STRIDE, outputs[:, 3:]


share = run(learned, args.envs, args.seed + 1000)
print(f'the network succeeded in {share:.2f} of {args.envs} episodes with other places of the cube')
assert args.updates < 5000 or share > 0.7
