"""A Franka in front of a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import ManipulationTaskCfg

import_extensions()


@pytest.fixture
def franka(tmp_path: Path) -> Iterator[Env]:
    """Three episodes, whose results are in `results.jsonl`."""
    task: Any = ManipulationTaskCfg(
        scene_asset_path='scenes/empty.xml',
        robots=[FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg])],
        prompt='move',
        target='nothing',
        episode_idx=0,
        max_steps=100_000,
    )
    config = Config(
        simulator=SimConfig(physics_dt='1/240', substeps=4, threads=1),
        task_configs=[task] * 3,
        metrics_save_path=str(tmp_path / 'results.jsonl'),
    )
    with closing(Env(config)) as env:
        yield env
