"""Two endless episodes; the first env is reset again and again, and gets an action for a robot that it does not have.

After the first 500 steps, env 0 is reset every so many steps (argument), ten times in all.
"""
# pyright: reportPossiblyUnboundVariable=false

import sys

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

every = int(sys.argv[1])
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg])],
        )
        for _ in range(2)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
env.reset()
action = {'move_by_speed': (1.0, 0.0, 0.0)}
i = 0
resets = 0
start = before = None
while env.simulation_app.is_running():
    i += 1
    obs, *_ = env.step(action=[{'h1_1': action}, {'h1': action}])
    position = obs[1]['h1']['position']
    if i == 1:
        start = position
    if before is not None:  # in the step after a reset of its neighbour it goes on as before
        assert np.linalg.norm(position - before) < 0.05
        before = None
    if i == 501:
        assert np.linalg.norm(position - start) > 1.0, 'env 1 does not walk'
    if i >= 500 and (i - 500) % every == 0:
        _, info = env.reset([0])
        assert len(info) == 1 and None in info
        resets, before = resets + 1, position
    if resets == 10 and i > 501:
        break
assert obs[0] is None and obs[1]['h1']['position'][2] > 0.8
env.close()
