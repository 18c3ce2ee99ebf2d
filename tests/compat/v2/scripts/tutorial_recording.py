"""What robots did, written to a file and read again (the file: argument)."""
# pyright: reportArgumentType=false, reportCallIssue=false

import json
import sys

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.metrics import RecordingMetricCfg, TraveledDistanceMetricCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

path = sys.argv[1]
with open(path, 'w') as file:
    file.write('of an earlier run\n')
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    metrics_save_path=path,
    task_configs=[
        FiniteStepTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[JetbotRobotCfg(position=(0.0, 0.0, 0.0), controllers=[move_by_speed_cfg])],
            metrics=[
                RecordingMetricCfg(robot_name='jetbot', fields=['position']),
                TraveledDistanceMetricCfg(robot_name='jetbot'),
            ],
            max_steps=240,
        )
        for _ in range(3)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
env.reset()
while env.simulation_app.is_running():
    action = [{'jetbot': {'move_by_speed': [speed, 0.0]}} for speed in (0.5, 0.25)]
    obs, _, terminated, _, _ = env.step(action)
    if all(terminated):
        _, infos = env.reset([0, 1])
        if not all(infos):
            break
env.close()

with open(path) as file:
    episodes = [json.loads(line) for line in file]
assert len(episodes) == 2  # the third was not run to its end
for episode, speed in zip(episodes, (0.5, 0.25), strict=True):
    assert sorted(episode) == ['recording_metric', 'traveled_distance_metric']
    record = episode['recording_metric']
    assert list(record) == [str(step) for step in range(239)]
    places = np.array([step['jetbot']['position'] for step in record.values()])
    way = np.linalg.norm(np.diff(places, axis=0), axis=1).sum()
    assert abs(way - episode['traveled_distance_metric']) < 1e-3
    assert abs(way - speed) < 0.2 * speed  # m, in a second, with a start
