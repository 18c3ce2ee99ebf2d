"""A robot that is driven by the keyboard: I and K ahead and back, U and O to the left and right (180 steps)."""
# pyright: reportArgumentType=false, reportCallIssue=false

import sys

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[JetbotRobotCfg(position=(0.0, 0.0, 0.0), controllers=[move_by_speed_cfg])],
        )
    ],
)
import_extensions()
env = Env(config)
obs, _ = env.reset()

from internutopia_extension.interactions.keyboard import KeyboardInteraction  # noqa: E402

keyboard = KeyboardInteraction()
start = obs['position'][0]
ahead = 0
i = 0
while env.simulation_app.is_running():
    i += 1
    command = keyboard.get_input()
    assert command.shape == (6,)
    speed, rotation = command[0] - command[1], command[4] - command[5]
    ahead += speed > 0
    obs, *_ = env.step(action={'move_by_speed': [0.5 * speed, rotation]})
    if i == 180:
        break
if sys.stdin.isatty():
    assert ahead > 0 and obs['position'][0] > start
else:
    assert ahead == 0 and np.isclose(obs['position'][0], start, atol=0.01)
env.close()
