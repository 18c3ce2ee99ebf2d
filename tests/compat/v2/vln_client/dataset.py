"""The episodes of an evaluation, as they are on disk, and the task configs that they become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.core.config import TaskCfg
from internutopia.core.config.robot import ControllerCfg, SensorCfg
from internutopia.core.util import is_in_container
from internutopia_extension.configs.joint_names import H1_19
from internutopia_extension.configs.robots.h1 import H1RobotCfg
from internutopia_extension.configs.sensors import RepCameraCfg

from .configs import DiscreteCfg, FlashCfg, PanoramaCfg, PathMetricCfg, PathTaskCfg, SpeedCfg, StandStillCfg

FLASH_TYPES = {'flash': 'ClientFlash', 'flash_collision': 'ClientFlashCollision'}


class Dataset:
    """Episodes and assets of a folder: `<split>.json`, `policy.pt`, `robots`, `scenes/<scan>`."""

    def __init__(self, folder: Path, split: str, done: set[str], limit: int | None = None):
        self.folder = folder
        episodes = json.loads((folder / f'{split}.json').read_text())
        self.episodes = [each for each in episodes if each['path_key'] not in done][:limit]

    def scene(self, scan: str) -> str:
        """The USD of a flat, whose textures are elsewhere in a container."""
        return str(self.folder / 'scenes' / scan / ('fixed_docker.usda' if is_in_container() else 'fixed.usda'))

    def task_configs(self, settings: dict[str, Any]) -> list[TaskCfg]:
        """A task config for each episode; all of them have one robot config, but for its pose."""
        robot = H1RobotCfg(
            type='ClientH1',
            usd_path=str(self.folder / 'robots/h1_vln_pointcloud.usda'),
            controllers=self._controllers(settings['controller'], settings['steps_per_action']),
            sensors=_sensors(settings['cameras']) if settings['cameras'] else [],
        )
        return [self._task_config(episode, robot, settings['task_settings']) for episode in self.episodes]

    def _task_config(self, episode: dict[str, Any], robot: H1RobotCfg, settings: dict[str, Any]) -> PathTaskCfg:
        shortest = episode['info']['geodesic_distance']
        return PathTaskCfg(
            **settings,
            scene_asset_path=self.scene(episode['scan']),
            robots=[robot.update(position=episode['start_position'], orientation=episode['start_rotation'])],
            metrics=[PathMetricCfg(shortest_to_goal_distance=shortest, success_distance=settings['success_distance'])],
            data={
                **episode,
                'start_position': np.array(episode['start_position']),
                'reference_path': np.array(episode['reference_path']),
            },
        )

    def _controllers(self, controller: str, steps: int) -> list[ControllerCfg]:
        walk = SpeedCfg(joint_names=H1_19, policy_weights_path=str(self.folder / 'policy.pt')).model_dump()
        still: dict[str, Any] = {**StandStillCfg().model_dump(), 'sub_controllers': [walk]}
        if controller == 'discrete':
            move = {**DiscreteCfg(steps_per_action=steps).model_dump(), 'sub_controllers': [walk]}
        else:
            move = FlashCfg(type=FLASH_TYPES[controller]).model_dump()
        return [ControllerCfg(**still), ControllerCfg(**move)]


def _sensors(cameras: dict[str, Any]) -> list[SensorCfg]:
    """Cameras of the client's class, though their configs are of the built-in one; and one for point clouds."""
    panorama = RepCameraCfg(**PanoramaCfg(resolution=cameras['panorama']).model_dump())
    panorama.type = 'ClientCamera'
    size = cameras['topdown']
    above = panorama.update(name='topdown_camera_500', prim_path='topdown_camera_500', resolution=[size, size])
    cloud = RepCameraCfg(
        name='tp_pointcloud',
        prim_path='logo_link/Camera_pointcloud',
        resolution=cameras['pointcloud'],
        rgba=False,
        pointcloud=True,
    )
    return [panorama, above, cloud]
