"""Four robots on legs walk with whatever policies the asset folder has: start height, way in 3 s."""
# pyright: reportArgumentType=false, reportCallIssue=false

import os

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots import aliengo, g1, gr1, h1
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

SPEED, SECONDS = 0.5, 3.0
robots = [
    h1.H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[h1.move_by_speed_cfg, h1.rotate_cfg]),
    g1.G1RobotCfg(position=(0.0, 0.0, 0.8), controllers=[g1.move_by_speed_cfg]),
    gr1.GR1RobotCfg(position=(0.0, 0.0, 0.95), controllers=[gr1.move_by_speed_cfg]),
    aliengo.AliengoRobotCfg(position=(0.0, 0.0, 0.5), controllers=[aliengo.move_by_speed_cfg]),
]
assert gm.ASSET_PATH == os.environ['INTERNUTOPIA_ASSETS_PATH']
assert os.path.exists(h1.move_by_speed_cfg.policy_weights_path)
import_extensions()
for robot in robots:
    task = SingleInferenceTaskCfg(scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd', robots=[robot])
    env = Env(Config(simulator=SimConfig(physics_dt=1 / 48, rendering_dt=1 / 48), task_configs=[task]))
    obs, _ = env.reset()
    start = obs['position']
    for _ in range(int(SECONDS * 48)):
        obs, *_ = env.step(action={'move_by_speed': [SPEED, 0.0, 0.0]})
    way = obs['position'] - start
    print(robot.name, way)
    assert abs(way[0] - SPEED * SECONDS) < 0.4 and abs(way[1]) < 0.3 and abs(way[2]) < 0.2, (robot.name, way)
    assert np.dot(obs['orientation'], [1, 0, 0, 0]) > 0.95
    env.close()
