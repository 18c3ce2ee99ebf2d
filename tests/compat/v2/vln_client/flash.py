"""The controllers that are there at once: without regard to what is in the way, and with it."""

# pyright: reportIncompatibleMethodOverride=false, reportMissingImports=false
# written for the base classes of 2.x, and modules that are not there before they are requested

from __future__ import annotations

import math
from typing import Any

import numpy as np

from internutopia.core.robot.articulation import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene

from .robots import CAMERA_ABOVE, VIEW_WIDTH
from .walking import FORWARD, LEFT, RIGHT

RADIUS = 0.4  # m, of the robot as seen from above
STEP_OVER = 0.3  # m: what is lower is no obstacle


@BaseController.register('ClientFlash')
class ClientFlash(BaseController):
    """Moves ahead or turns in one step."""

    def __init__(self, config: Any, robot: BaseRobot, scene: IScene) -> None:
        super().__init__(config=config, robot=robot, scene=scene)
        self.config: Any = config

    def action_to_control(self, action: Any) -> ArticulationAction:
        from omni.isaac.core.utils.rotations import (
            euler_angles_to_quat,
            quat_to_euler_angles,
        )

        articulation: Any = self.robot.articulation
        position, orientation = articulation.get_world_pose()
        yaw = quat_to_euler_angles(orientation)[2]
        if action[0] == FORWARD:
            if self.is_free(position, yaw):
                position = position + self.config.forward_distance * np.array([np.cos(yaw), np.sin(yaw), 0])
        elif action[0] in (LEFT, RIGHT):
            turn = math.radians(self.config.rotation_angle) * (1 if action[0] == LEFT else -1)
            orientation = euler_angles_to_quat(np.array([0.0, 0.0, yaw + turn]))
        joints = len(articulation.dof_names)
        isaac = articulation._articulation
        isaac.set_world_pose(position=position, orientation=orientation)
        isaac.set_world_velocity(np.zeros(6))
        isaac.set_joint_velocities(np.zeros(joints))
        isaac.set_joint_positions(np.zeros(joints))
        isaac.set_joint_efforts(np.zeros(joints))
        return ArticulationAction()

    def is_free(self, position: np.ndarray, yaw: float) -> bool:
        """Whether nothing is in the way of a move ahead."""
        return True

    def get_obs(self) -> dict[str, Any]:
        return {'finished': True}


@BaseController.register('ClientFlashCollision')
class ClientFlashCollision(ClientFlash):
    """The same, but stays where it is if the camera above sees something in the way."""

    def is_free(self, position: np.ndarray, yaw: float) -> bool:
        camera: Any = self.robot.sensors['topdown_camera_500']
        depth = camera.get_data()['depth']
        size = depth.shape[0]
        rows, columns = np.mgrid[:size, :size] + 0.5
        # the world's +x is up in the picture and +y to the left; metres from the robot, which is in the middle
        x, y = ((size / 2 - rows) * VIEW_WIDTH / size, (size / 2 - columns) * VIEW_WIDTH / size)
        ahead, aside = np.cos(yaw) * x + np.sin(yaw) * y, np.cos(yaw) * y - np.sin(yaw) * x
        way = (ahead > RADIUS) & (ahead < RADIUS + self.config.forward_distance) & (abs(aside) < RADIUS / 2)
        heights = position[2] + CAMERA_ABOVE - depth
        return not (heights[way] > STEP_OVER).any()
