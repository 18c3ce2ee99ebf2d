"""Jetbot: speeds that it was commanded, at any scale."""

from __future__ import annotations

import numpy as np
import pytest

from internutopia.util.rotations import yaw_of
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

import_extensions()

FORWARD, ROTATION = 0.3, 0.5  # m/s, rad/s
CLOSE = 0.02  # of the commanded speed
RATE = 240  # steps per second


@pytest.mark.slow
@pytest.mark.parametrize('scale', [1.0, 5.0])
def test_it_drives_and_turns_as_commanded_at_any_scale(scale: float, make_env):
    robot = JetbotRobotCfg(scale=(scale, scale, scale), controllers=[move_by_speed_cfg])
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])
    env = make_env(tasks=[task], env_num=1, sim={'physics_dt': 1 / RATE})
    env.reset()
    poses = []
    for _ in range(3 * RATE):
        obs, *_ = env.step([{'jetbot': {'move_by_speed': [FORWARD, ROTATION]}}])
        poses.append((obs[0]['jetbot']['position'], yaw_of(obs[0]['jetbot']['orientation'])))
    positions, yaws = (np.array(values) for values in zip(*poses[RATE:], strict=True))
    turned = np.unwrap(yaws)[-1] - yaws[0]
    way = np.linalg.norm(np.diff(positions[:, :2], axis=0), axis=-1).sum()
    seconds = (len(yaws) - 1) / RATE
    assert abs(turned / seconds - ROTATION) < CLOSE * ROTATION
    assert abs(way / seconds - FORWARD) < CLOSE * FORWARD
