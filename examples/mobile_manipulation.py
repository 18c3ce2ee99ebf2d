"""A Ridgeback with a Franka on it fetches cubes that its arm cannot reach from where it is, in three envs.

It drives to a cube, picks it up, drives on with it, and puts it down. The base is moved by `move_to_point` and the arm
by inverse kinematics; one thing follows the other as soon as it is `finished`. The base gets its place at every step:
without a command it would go on at its last speed.
"""

from typing import Any

import numpy as np

from internutopia import Config, Env, SimConfig, TaskCfg
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.ridgeback_franka import (
    RidgebackFrankaRobotCfg,
    arm_ik_cfg,
    gripper_cfg,
    move_to_point_cfg,
)
from internutopia_extension.configs.tasks import ManipulationTaskCfg

EDGE = 0.04  # m
DOWN = (0.0, 1.0, 0.0, 0.0)  # the gripper points to the floor
AHEAD = 0.66  # m, from the middle of the base to where it picks up and puts down
CUBES = [(2.0, 0.0), (2.2, 0.8), (1.8, -0.9)]  # m, by env
GOAL = (3.5, 0.4)  # m


def near(point: tuple[float, float], start: tuple[float, float]) -> tuple[float, float, float]:
    """Where the base stands to reach a point, coming from another place."""
    way = np.subtract(point, start)
    x, y = np.asarray(point) - AHEAD * way / np.linalg.norm(way)
    return float(x), float(y), 0.0


def plan(cube: tuple[float, float]) -> list[tuple[str, Any, Any, str, int]]:
    """What has to be finished, place of the base, target of the arm, what the fingers do, and for how many steps."""
    first = near(cube, (0.0, 0.0))
    second = near(GOAL, first[:2])
    drive, arm = move_to_point_cfg.name, arm_ik_cfg.name
    return [
        (drive, first, [None, None], 'open', 1),
        (arm, first, [(*cube, 0.2), DOWN], 'open', 1),
        (arm, first, [(*cube, EDGE / 2), DOWN], 'open', 15),
        (arm, first, [(*cube, EDGE / 2), DOWN], 'close', 15),
        (arm, first, [(*cube, 0.6), DOWN], 'close', 1),
        (drive, second, [None, None], 'close', 1),
        (arm, second, [(*GOAL, 0.2), DOWN], 'close', 1),
        (arm, second, [(*GOAL, EDGE / 2), DOWN], 'close', 15),
        (arm, second, [(*GOAL, EDGE / 2), DOWN], 'open', 15),
        (arm, second, [(*GOAL, 0.4), DOWN], 'open', 1),
    ]


robot = RidgebackFrankaRobotCfg(controllers=[move_to_point_cfg, arm_ik_cfg, gripper_cfg])
tasks: list[TaskCfg] = [
    ManipulationTaskCfg(
        scene_asset_path='scenes/empty.xml',
        robots=[robot],
        objects=[
            DynamicCubeCfg(
                name='cube', prim_path='/cube', position=(*cube, EDGE / 2), scale=(EDGE, EDGE, EDGE), mass=0.1
            )
        ],
        prompt='bring the cube to the goal',
        target='cube',
        max_steps=1500,
        episode_idx=index,
    )
    for index, cube in enumerate(CUBES)
]
simulator = SimConfig(physics_dt=1 / 240, substeps=4)
import_extensions()
env = Env(Config(simulator=simulator, env_num=len(CUBES), task_configs=tasks, metrics_save_path='none'))
env.reset()

plans = [plan(cube) for cube in CUBES]
stage, waited = [0] * len(CUBES), [0] * len(CUBES)
highest = np.zeros(len(CUBES))
while min(stage) < len(plans[0]):
    current = [steps[min(now, len(steps) - 1)] for steps, now in zip(plans, stage, strict=True)]
    actions = [
        {robot.name: {move_to_point_cfg.name: [place], arm_ik_cfg.name: target, gripper_cfg.name: [fingers]}}
        for _, place, target, fingers, _ in current
    ]
    obs, _, terminated, _, _ = env.step(actions)
    assert not any(terminated), 'too slow'
    for i, (controller, _, _, _, least) in enumerate(current):
        waited[i] += 1
        finished = obs[i][robot.name]['controllers'][controller]['finished']
        if stage[i] < len(plans[i]) and finished and waited[i] >= least:
            stage[i], waited[i] = stage[i] + 1, 0
        highest[i] = max(highest[i], env.runner.get_obj('cube', i).get_pose()[0][2])

errors = [np.linalg.norm(env.runner.get_obj('cube', i).get_pose()[0][:2] - GOAL) for i in range(len(CUBES))]
print(f'{len(CUBES)} cubes were lifted by {highest.min():.2f} m and more, and lie {max(errors):.4f} m off at most')
assert highest.min() > 0.5 and max(errors) < 0.02
env.close()
