"""Configs of two Jetbots, and of their cameras."""

from __future__ import annotations

from typing import Any

import pytest
from jetbot_runs import STEPS, MakeConfig

from internutopia.config import Config, SensorCfg, SimConfig
from internutopia.config.learning import ActionCfg, LearningCfg, ObservationTermCfg, RewardTermCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

CAMERA = 'chassis/rgb_camera/jetbot_camera'


@pytest.fixture
def make_config() -> MakeConfig:
    """Makes configs with cameras of these names and resolutions, and other fields."""

    def make(cameras: dict[str, tuple[int, int]] | None = None, **fields: Any) -> Config:
        sensors: list[SensorCfg] = [
            RepCameraCfg(name=name, prim_path=CAMERA, resolution=size) for name, size in (cameras or {}).items()
        ]
        robot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg], sensors=sensors)
        tasks = [
            FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot], max_steps=steps) for steps in STEPS
        ]
        simulator = SimConfig(physics_dt='1/240', substeps=4, threads=1, rendering_interval=0)
        return Config(
            **{
                'simulator': simulator,
                'env_num': 2,
                'task_configs': tasks,
                'metrics_save_path': None,
                'seed': 0,
                **fields,
            }
        )

    return make


@pytest.fixture
def config(make_config: MakeConfig) -> Config:
    """One without cameras."""
    return make_config()


@pytest.fixture
def learning_config() -> Config:
    """Two Jetbots that learn, at 30 steps per second, in episodes of four steps."""
    learning = LearningCfg(
        action=ActionCfg(controller='move_by_speed', repeat=2),
        observations=[ObservationTermCfg(term='base_linear_velocity'), ObservationTermCfg(term='last_action')],
        rewards=[RewardTermCfg(term='alive', weight=3.0)],
    )
    robot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg])
    task = FiniteStepTaskCfg(
        scene_asset_path='scenes/empty.xml', robots=[robot], learning=learning, max_steps=1000, max_episode_steps=4
    )
    simulator = SimConfig(physics_dt='1/240', substeps=4, threads=1)
    return Config(simulator=simulator, env_num=2, task_configs=[task] * 3, metrics_save_path=None, seed=0)
