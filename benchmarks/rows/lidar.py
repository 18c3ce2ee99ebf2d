"""Lidar: what it costs besides the rays themselves."""

from __future__ import annotations

import math
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from internutopia.bench.measure import Row, race
from internutopia.bench.workloads import h1_config, mujoco_world, write_scenes
from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia_extension.configs.sensors import LidarCfg
from internutopia_extension.sensors.lidar import Lidar, ray_directions

# over the head of H1, so that no ray meets the robot, which bare rays would not pass through
_LIDAR = LidarCfg(prim_path='torso_link', translation=(0.0, 0.0, 0.9), vertical_fov=math.radians(20), vertical_rays=4)
_POSE_ERROR = 1e-4  # [m]: the two sides compute the pose of the lidar in another precision


def lidar_rays(quick: bool) -> list[Row]:
    """Rays per second of a lidar on each H1 against bare `Batch.ray` along the same rays."""
    env_num, columns, rounds = (4, 30, 1) if quick else (64, 60, 4)
    cfg = _LIDAR.update(horizontal_rays=columns)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Env(_config(env_num, write_scenes(Path(folder), 1), cfg))) as env,
    ):
        env.reset()
        world = mujoco_world(env.runner.world)
        batched_robot = env.runner.envs[0].task.robots['h1'].batch  # pyright: ignore[reportOptionalMemberAccess]
        assert batched_robot is not None
        lidar = batched_robot.robot.sensors['lidar']
        assert isinstance(lidar, Lidar)
        batch, _ = world.batch(0)
        body = world.scene(0).robots['h1'].bodies['torso_link'].body
        origins = world.data(0).xpos[body] + _LIDAR.translation  # H1 starts upright
        directions = ray_directions(cfg)
        groups = np.isin(np.arange(6), cfg.geom_groups).astype(np.uint8)
        env_ids = np.arange(env_num)

        def ours(k: int) -> None:
            world.version += 1  # as after a step: nothing is remembered
            lidar.update(env_ids)

        def bare(k: int) -> np.ndarray:
            return batch.ray(origins, directions, groups, True, body)[0]

        ours(0)
        expected = bare(0).reshape(env_num, *lidar.observe()['ranges'].shape[1:])
        expected[(expected < 0) | (expected > cfg.max_range)] = np.inf
        np.testing.assert_allclose(lidar.observe()['ranges'], expected, atol=_POSE_ERROR)
        result = race({'ours': ours, 'bare': bare}, lambda: None, rounds=rounds, steps=2 if quick else 6, turn=1)
    rays = env_num * len(directions)
    return [
        Row(
            what=f'Lidar on {env_num} H1 vs bare Batch.ray',
            unit='rays/s',
            ours=rays / result.median('ours'),
            reference=rays / result.median('bare'),
            ratio=result.speed('ours', 'bare'),
            bound=0.9,
            note=f'{len(directions)} rays each, {batch.nthread} threads each; distances equal',
        )
    ]


def _config(env_num: int, scenes: list[Path], cfg: LidarCfg) -> Config:
    config = h1_config(env_num, scenes)
    task = config.task_configs[0]
    return config.update(task_configs=[task.update(robots=[task.robots[0].update(sensors=[cfg])])])
