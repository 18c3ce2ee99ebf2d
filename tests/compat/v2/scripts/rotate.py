"""A robot turns by half a turn, episode after episode (arguments: robot, episodes)."""

import sys
from importlib import import_module

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

ROBOTS = {  # class of the config, and height to start from [m]
    'h1': ('H1RobotCfg', 1.05),
    'h1_with_hand': ('H1WithHandRobotCfg', 1.05),
    'g1': ('G1RobotCfg', 0.8),
    'gr1': ('GR1RobotCfg', 0.95),
    'aliengo': ('AliengoRobotCfg', 1.05),
    'jetbot': ('JetbotRobotCfg', 0.0),
}
robot, episodes = sys.argv[1], int(sys.argv[2])
cls, height = ROBOTS[robot]
module = import_module(f'internutopia_extension.configs.robots.{robot}')
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[getattr(module, cls)(position=(0.0, 0.0, height), controllers=[module.rotate_cfg])],
        )
        for _ in range(episodes)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, info = env.reset()
goal = (0.0, 0.0, 0.0, 1.0)  # yaw pi


def yaw_error(orientation: np.ndarray) -> float:
    w, x, y, z = orientation
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return abs((np.pi - yaw + np.pi) % (2.0 * np.pi) - np.pi)


steps = reached = 0
needed = []
while env.simulation_app.is_running():
    steps += 1
    obs, *_ = env.step(action={module.rotate_cfg.name: [goal]})
    reached += yaw_error(obs['orientation']) < module.rotate_cfg.threshold
    assert steps <= 2000, f'{robot} has turned to {obs["orientation"]}, was there {reached} times'
    if reached == 100:
        needed.append(steps)
        steps = reached = 0
        obs, info = env.reset()
        if info is None:
            break
assert len(needed) == episodes
env.close()
