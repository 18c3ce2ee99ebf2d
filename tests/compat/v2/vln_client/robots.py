"""The robot of the client."""

# pyright: reportMissingImports=false
# of modules that are not there before they are requested

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia_extension.robots.h1 import H1Robot

CAMERA_ABOVE = 0.75  # m, over the robot
VIEW_WIDTH = 20.0  # m, what that camera sees: 25 pixels per metre if the picture has 500


@BaseRobot.register('ClientH1')
class ClientH1(H1Robot):
    """An H1 that knows its torso and IMU links, remembers its action, and takes a camera along above it."""

    def __init__(self, config: Any, scene: IScene):
        super().__init__(config, scene)
        self.current_action: dict[str, Any] | None = None
        self._torso_link: IRigidBody | None = None
        self._imu_link: IRigidBody | None = None

    def post_reset(self) -> None:
        super().post_reset()
        self._torso_link = self._rigid_body_map[self.config.prim_path + '/torso_link']
        self._imu_link = self._rigid_body_map[self.config.prim_path + '/imu_link']

    def apply_action(self, action: dict[str, Any]) -> None:
        from omni.isaac.core.utils.numpy.rotations import euler_angles_to_quats

        if 'topdown_camera_500' in self.sensors:
            camera: Any = self.sensors['topdown_camera_500']
            x, y, z = self.articulation.get_world_pose()[0].tolist()
            looks_down = euler_angles_to_quats(np.array([0, 0, -90]), degrees=True)
            camera.set_world_pose([x, y, z + CAMERA_ABOVE], looks_down)
        if self.current_action is None:
            self.current_action = action
        super().apply_action(action)
