"""The camera of the client, on `ICamera`."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor.camera import ICamera
from internutopia.core.sensor.sensor import BaseSensor

FARTHEST = 10.0  # m


@BaseSensor.register('ClientCamera')
class ClientCamera(BaseSensor):
    """Picture and depth."""

    def __init__(self, config: Any, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.config: Any = config
        self.resolution = config.resolution
        self._camera: Any = None

    def post_reset(self) -> None:
        self.restore_sensor_info()

    def restore_sensor_info(self) -> None:
        self.cleanup()
        self._camera = ICamera.create(
            name=self.config.name,
            prim_path=f'{self._robot.config.prim_path}/{self.config.prim_path}',
            rgba=True,
            bounding_box_2d_tight=False,
            distance_to_image_plane=True,
            camera_params=False,
            resolution=self.resolution,
        )

    def get_data(self) -> dict[str, Any]:
        rgba = self._camera.get_rgba()
        if rgba.shape[0] != self.resolution[1]:
            raise AssertionError('there is no picture yet')  # such packages go on with noise instead
        depth = self._camera.get_distance_to_image_plane()
        depth[depth > FARTHEST] = FARTHEST
        return self._make_ordered(OrderedDict(rgba=rgba, depth=depth))

    def cleanup(self) -> None:
        if self._camera is not None:
            self._camera.cleanup()

    def get_world_pose(self) -> tuple[np.ndarray, np.ndarray]:
        return self._camera.get_world_pose()

    def set_world_pose(self, position: Any, orientation: Any) -> None:
        self._camera.set_world_pose(position, orientation)
