"""Envs with a Jetbot each beside a crate, of both APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from internutopia.config import Config, SimConfig
from internutopia.config.learning import ActionCfg, CommandTermCfg, LearningCfg, ObservationTermCfg, RewardTermCfg
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

SCENE = """<mujoco><worldbody>
  <geom type="plane" size="0 0 1"/>
  <body name="crate" pos="0 -1 0.1"><freejoint/><geom type="box" size="0.1 0.2 0.1"/></body>
</worldbody></mujoco>"""
SPEEDS = {'forward': (-0.5, 1.0), 'lateral': (0.0, 0.0), 'yaw_rate': (-1.0, 1.0)}


@pytest.fixture
def config(tmp_path: Any) -> Config:
    """Three envs."""
    (tmp_path / 'scene.xml').write_text(SCENE)
    robot = JetbotRobotCfg(position=(0, 0, 0.03), controllers=[move_by_speed_cfg])
    learning = LearningCfg(
        action=ActionCfg(controller='move_by_speed'),
        commands={'velocity': CommandTermCfg(term='velocity', params=SPEEDS, resample_time=0.1)},
        observations=[ObservationTermCfg(term='command', params={'name': 'velocity'})],
        rewards=[RewardTermCfg(term='alive', weight=3.0)],
    )
    scene = str(tmp_path / 'scene.xml')
    task = FiniteStepTaskCfg(max_steps=100_000, scene_asset_path=scene, robots=[robot], learning=learning)
    return Config(
        simulator=SimConfig(physics_dt='1/240', substeps=4, threads=1),
        env_num=3,
        env_offset_size=6.0,
        task_configs=[task],
        episode_order='cycle',
        metrics_save_path=None,
        seed=0,
    )


@pytest.fixture
def make_env(config: Config) -> Iterator[Callable[[], Env]]:
    """Makes envs of the list API, which are closed after the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Env(config)))


@pytest.fixture
def vector_env(config: Config) -> Iterator[VectorEnv]:
    """The same of the array API."""
    with closing(VectorEnv(config)) as envs:
        yield envs


import_extensions()
