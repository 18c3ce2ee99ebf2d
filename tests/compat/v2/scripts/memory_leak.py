"""Memory of episode after episode (episodes, steps of an episode: arguments)."""

import os
import sys

import psutil

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

episodes, max_steps = int(sys.argv[1]), int(sys.argv[2])
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        FiniteStepTaskCfg(
            max_steps=max_steps,
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg])],
        )
        for _ in range(episodes)
    ],
)
import_extensions()
env = Env(config)
_, info = env.reset()
process = psutil.Process(os.getpid())
done = 0
used: list[float] = []
while env.simulation_app.is_running():
    _, _, terminated, _, _ = env.step(action={'move_by_speed': (1.0, 0.0, 0.0)})
    if terminated:
        done += 1
        if done % 20 == 0:
            used.append(process.memory_info().rss / 2**20)
        _, info = env.reset()
        if not info:
            break
assert done == episodes
assert all(later - earlier < 40 for earlier, later in zip(used, used[1:], strict=False)), used
env.close()
