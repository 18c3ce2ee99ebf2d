"""Two robots in each of two envs go to points of their own, episode after episode (arguments: robot, tasks)."""

import sys
from importlib import import_module

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

ROBOTS = {  # class of the config, and height to start from [m]
    'h1': ('H1RobotCfg', 1.05),
    'h1_with_hand': ('H1WithHandRobotCfg', 1.05),
    'g1': ('G1RobotCfg', 0.78),
    'gr1': ('GR1RobotCfg', 0.95),
    'aliengo': ('AliengoRobotCfg', 1.05),
    'jetbot': ('JetbotRobotCfg', 0.0),
}
GOALS = {'h1_0': (3.0, 2.0, 0.0), 'h1_1': (6.0, 2.0, 0.0)}  # whatever the robot is
robot, tasks = sys.argv[1], int(sys.argv[2])
cls, height = ROBOTS[robot]
module = import_module(f'internutopia_extension.configs.robots.{robot}')
move = module.move_to_point_cfg
robots = [
    getattr(module, cls)(name=name, prim_path=f'/{name}', position=(x, 0.0, height), controllers=[move])
    for name, x in zip(GOALS, (0.0, 3.0), strict=True)
]
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd', scene_scale=(0.01, 0.01, 0.01), robots=robots
        )
        for _ in range(tasks)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()
action = {name: {move.name: [goal]} for name, goal in GOALS.items()}
steps = [0, 0]
reached = np.zeros((2, 2), int)
needed = []
while env.simulation_app.is_running():
    obs, *_ = env.step(action=[action, action])
    if not any(obs):
        break
    for i, env_obs in enumerate(obs):
        if env_obs is None:
            continue
        steps[i] += 1
        for n, (name, goal) in enumerate(GOALS.items()):
            reached[i, n] += np.linalg.norm(np.asarray(goal[:2]) - env_obs[name]['position'][:2]) < 0.1
        assert steps[i] <= 5000, f'env {i}: {reached[i]}, {[env_obs[name]["position"] for name in GOALS]}'
        if (reached[i] >= 10).all():
            needed.append(steps[i])
            env.reset(env_ids=[i])
            steps[i], reached[i] = 0, 0
assert len(needed) == tasks
env.close()
