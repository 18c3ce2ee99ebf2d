"""A script written for InternUtopia 2.x runs as it is: two H1 that are sent along a path."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from internutopia.core.config import Config
from internutopia_extension.configs.robots.h1 import H1RobotCfg, h1_tp_camera_cfg

SCRIPT = """
import json
import sys

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import (
    H1RobotCfg,
    h1_camera_cfg,
    h1_tp_camera_cfg,
    move_along_path_cfg,
    move_by_speed_cfg,
    rotate_cfg,
)
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

steps, config_file, obs_file = int(sys.argv[1]), sys.argv[2], sys.argv[3]

h1 = H1RobotCfg(
    position=(0.0, 0.0, 1.05),
    controllers=[move_by_speed_cfg, move_along_path_cfg, rotate_cfg],
    sensors=[
        h1_camera_cfg.update(name='camera', resolution=(320, 240), enable=False),
        h1_tp_camera_cfg.update(enable=False),
    ],
)
tasks = [
    SingleInferenceTaskCfg(
        scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
        scene_scale=(0.01, 0.01, 0.01),
        robots=[h1],
    )
    for _ in range(2)
]
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    task_configs=tasks,
)
with open(config_file, 'w') as file:
    file.write(config.model_dump_json(indent=4))

import_extensions()
env = Env(config)
obs, _ = env.reset()

move_action = {move_along_path_cfg.name: [[(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (3.0, 4.0, 0.0)]]}
i = 0
while env.simulation_app.is_running():
    i += 1
    action = {'h1': move_action}
    obs, _, terminated, _, _ = env.step(action=[action, action])
    assert not any(terminated)
    arrived = all(each['h1']['controllers']['move_along_path']['finished'] for each in obs)
    if arrived or i == steps:
        with open(obs_file, 'w') as file:
            json.dump(obs, file, default=lambda array: array.tolist())
        env.close()
"""
STEPS = 4000  # 17 s for 5.6 m: a robot that falls on the way, or walks at half its speed, shows


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, list[dict], str]:
    """The script's config, its last observations and what it wrote to the terminal as warnings."""
    folder = tmp_path_factory.mktemp('seed')
    files = [folder / 'config.json', folder / 'obs.json']
    script = [sys.executable, '-c', SCRIPT, str(STEPS), *map(str, files)]
    result = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    config, obs = (Path(file).read_text() for file in files)
    return Config.model_validate_json(config), json.loads(obs), result.stderr


@pytest.mark.nightly
def test_both_robots_walk_their_path_to_its_end(run):
    _, obs, _ = run
    assert len(obs) == 2
    for env_obs in obs:
        x, y, z = env_obs['h1']['position']
        assert abs(x - 3.0) < 0.2 and abs(y - 4.0) < 0.2  # m
        assert 0.85 < z < 1.05  # m: upright, the pelvis at the height that it walks at
        controllers = env_obs['h1']['controllers']
        path = controllers.pop('move_along_path')
        assert (path['total_points'], path['current_index'], path['finished']) == (3, 2, True)
        assert controllers == {'move_by_speed': {}, 'rotate': {'finished': False}}
        assert env_obs['h1']['sensors'] == {}
    assert obs[0] == obs[1]


def test_it_writes_nothing_but_that_speeds_are_clamped(run):
    _, _, warnings = run
    assert len(warnings.splitlines()) <= 1
    assert not warnings or 'are clamped' in warnings


def test_the_printed_config_can_be_read_again(run):
    config, _, _ = run
    robot = config.task_configs[1].robots[0]
    assert isinstance(robot, H1RobotCfg) and robot.sensors is not None
    assert robot.sensors[1] == h1_tp_camera_cfg.update(enable=False)
    assert config.env_offset_size == 10.0 and config.simulator.physics_dt == 1 / 240
