"""Different homes in the envs of one run: each env has its own, and gets another one by a reset."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from internutopia import Config, Env, SimConfig
from internutopia.bench.homes import Home, write_home
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

DRIVE = {'jetbot': {'move_by_speed': [0.3, 0.0]}}
STEPS = 20


def task(home: Home) -> FiniteStepTaskCfg:
    x, y, yaw = home.start
    orientation = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
    robot = JetbotRobotCfg(position=(x, y, 0.03), orientation=orientation, controllers=[move_by_speed_cfg])
    return FiniteStepTaskCfg(scene_asset_path=str(home.navigation), robots=[robot], max_steps=STEPS)


def tables(env: Env, env_id: int) -> np.ndarray:
    """`(n, 2)` where the tables of an env stand."""
    return np.array(sorted(found.position[:2].tolist() for found in env.runner.objects(env_id, category='table')))


@pytest.mark.slow
def test_each_env_has_its_home_and_another_one_after_a_reset(tmp_path: Path) -> None:
    import_extensions()
    homes = [write_home(tmp_path / str(seed), 'small', seed=seed) for seed in range(3)]
    order = [homes[0], homes[1], homes[2], homes[1]]  # env 0 goes on in the home of env 1
    simulator = SimConfig(physics_dt=1 / 240, substeps=4)
    env = Env(
        Config(simulator=simulator, env_num=3, task_configs=[task(home) for home in order], metrics_save_path='none')
    )
    env.reset()
    seen = []
    for _ in range(STEPS):
        seen, *_ = env.step([DRIVE] * 3)
    for env_id, home in enumerate(homes):
        moved = np.hypot(*(seen[env_id]['jetbot']['position'][:2] - home.start[:2]))
        assert 0.01 < moved < 0.3 * STEPS / 60 + 0.05
        boxes = [(model.low, model.high) for model in home.models if model.category == 'table']
        middles = sorted(((np.add(low, high) / 2)[:2]).tolist() for low, high in boxes)
        np.testing.assert_allclose(tables(env, env_id), middles, atol=1e-3)
    env.reset([0])
    again = []
    for _ in range(STEPS):
        again, *_ = env.step([DRIVE, None, None])
    assert np.array_equal(again[0]['jetbot']['position'], seen[1]['jetbot']['position'])
    np.testing.assert_array_equal(tables(env, 0), tables(env, 1))
    env.close()
