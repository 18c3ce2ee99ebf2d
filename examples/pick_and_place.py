"""A Franka picks up a cube and puts it down elsewhere, in four envs with the cube in four places.

The arm is moved by inverse kinematics, from one waypoint to the next as soon as it is `finished`.
"""

import numpy as np

from internutopia import Config, Env, SimConfig, TaskCfg
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import ManipulationTaskCfg

EDGE = 0.04  # m
DOWN = (0.0, 1.0, 0.0, 0.0)  # the gripper points to the floor
GOAL = (0.4, 0.25)  # m
CUBES = [(0.5, -0.1), (0.4, -0.25), (0.6, 0.05), (0.35, 0.0)]  # m, by env


def waypoints(cube: tuple[float, float]) -> list[tuple[float, float, float, str, int]]:
    """Points of the gripper (x, y, z) [m], what the fingers do there, and for how many steps at least."""
    return [
        (*cube, 0.15, 'open', 1),
        (*cube, EDGE / 2, 'open', 10),
        (*cube, EDGE / 2, 'close', 15),
        (*cube, 0.2, 'close', 1),
        (*GOAL, 0.2, 'close', 1),
        (*GOAL, EDGE / 2, 'close', 15),
        (*GOAL, EDGE / 2, 'open', 15),
        (*GOAL, 0.15, 'open', 1),
    ]


tasks: list[TaskCfg] = [
    ManipulationTaskCfg(
        scene_asset_path='scenes/empty.xml',
        robots=[FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg])],
        objects=[
            DynamicCubeCfg(
                name='cube', prim_path='/cube', position=(*cube, EDGE / 2), scale=(EDGE, EDGE, EDGE), mass=0.1
            )
        ],
        prompt='put the cube to the left of the robot',
        target='cube',
        max_steps=1000,
        episode_idx=index,
    )
    for index, cube in enumerate(CUBES)
]
simulator = SimConfig(physics_dt=1 / 240, substeps=4)
import_extensions()
env = Env(Config(simulator=simulator, env_num=len(CUBES), task_configs=tasks, metrics_save_path='none'))
env.reset()

plans = [waypoints(cube) for cube in CUBES]
stage, waited = [0] * len(CUBES), [0] * len(CUBES)
highest = np.zeros(len(CUBES))
while min(stage) < len(plans[0]):
    actions = []
    for plan, now in zip(plans, stage, strict=True):
        x, y, z, fingers, _ = plan[min(now, len(plan) - 1)]
        actions.append({'franka': {arm_ik_cfg.name: [(x, y, z), DOWN], gripper_cfg.name: [fingers]}})
    obs, _, terminated, _, _ = env.step(actions)
    assert not any(terminated), 'too slow'
    for i, plan in enumerate(plans):
        waited[i] += 1
        finished = obs[i]['franka']['controllers'][arm_ik_cfg.name]['finished']
        if stage[i] < len(plan) and finished and waited[i] >= plan[stage[i]][4]:
            stage[i], waited[i] = stage[i] + 1, 0
        highest[i] = max(highest[i], env.runner.get_obj('cube', i).get_pose()[0][2])

errors = [np.linalg.norm(env.runner.get_obj('cube', i).get_pose()[0][:2] - GOAL) for i in range(len(CUBES))]
print(f'{len(CUBES)} cubes were lifted by {highest.min():.2f} m and more, and lie {max(errors):.4f} m off at most')
assert highest.min() > 0.15 and max(errors) < 0.02
env.close()
