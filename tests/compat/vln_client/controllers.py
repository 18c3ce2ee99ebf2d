"""The controllers of the client: generic `ControllerCfg` with extra fields, one object per env."""

# pyright: reportIncompatibleMethodOverride=false, reportMissingImports=false
# written for the base classes of 2.x, and modules that are not there before they are asked for

from __future__ import annotations

import math
from typing import Any

import numpy as np

import internutopia.core.util.gym as gym_util
from internutopia.core.robot.articulation import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene

STOP, FORWARD, LEFT, RIGHT = range(4)
HEIGHTS = 426  # samples of the ground that the policy sees
STEPS_PER_INFERENCE, INFERENCES_PER_SCAN = 4, 5


@BaseController.register('ClientSpeed')
class ClientSpeed(BaseController):
    """Walks with a TorchScript policy of 492 inputs and 19 outputs."""

    def __init__(self, config: Any, robot: BaseRobot, scene: IScene) -> None:
        import torch

        self.calls = 0
        self.scans = 0
        self.targets: Any = None
        super().__init__(config=config, robot=robot, scene=scene)
        self.config: Any = config
        self.policy = torch.jit.load(config.policy_weights_path)
        self.joint_subset = ArticulationSubset(robot.articulation, config.joint_names)
        self.order = gym_util.gym_adapter(sorted(config.joint_names), config.joint_names)
        self.heights = torch.zeros(1, HEIGHTS)

    def forward(self, forward_speed: float = 0, rotation_speed: float = 0, lateral_speed: float = 0) -> Any:
        if self.calls % STEPS_PER_INFERENCE == 0:
            self.targets = self._decide([forward_speed, lateral_speed, rotation_speed])
        self.calls += 1
        return self.joint_subset.make_articulation_action(joint_positions=self.targets, joint_velocities=None)

    def action_to_control(self, action: Any) -> ArticulationAction:
        return self.forward(forward_speed=action[0], lateral_speed=action[1], rotation_speed=action[2])

    def _decide(self, command: list[float]) -> np.ndarray:
        import torch

        from internutopia.core.util.math import quat_rotate_inverse

        robot: Any = self.robot
        if self.calls % (STEPS_PER_INFERENCE * INFERENCES_PER_SCAN) == 0:
            self._scan()
        pelvis, imu = robot.get_robot_base(), robot._imu_link
        turned = torch.tensor(pelvis.get_world_pose()[1]).reshape(1, -1)
        spin = torch.tensor(imu.get_angular_velocity()[:]).reshape(1, -1)
        spin = quat_rotate_inverse(turned, spin)
        down = quat_rotate_inverse(turned, torch.tensor([[0.0, 0.0, -1.0]]))
        # numbers of one type: bmm takes no others
        assert torch.bmm(turned.view(1, 1, 4), turned.view(1, 4, 1)).item() > 0.99
        assert torch.bmm(spin.view(1, 1, 3), down.view(1, 3, 1)).isfinite().all()
        positions = self.joint_subset.get_joint_positions()
        positions -= 0.1  # in place, as a copy of the caller's own allows
        positions += 0.1
        positions = self.order.sim2gym(positions[np.newaxis])
        velocities = self.order.sim2gym(self.joint_subset.get_joint_velocities()[np.newaxis])
        last = np.zeros((1, len(self.joint_subset.joint_names)), np.float32)
        rows = [spin, down, torch.tensor([command]), torch.tensor(positions), torch.tensor(velocities)]
        inputs = torch.cat([*rows, torch.tensor(last), self.heights], dim=-1)
        return self.order.gym2sim(self.policy(inputs.float()).numpy())[0]

    def _scan(self) -> None:
        cloud = self.robot.sensors['tp_pointcloud'].get_data()['pointcloud']
        if cloud is not None and len(cloud):
            self.scans += 1
            self.heights[...] = float(np.median(cloud[:, 2]))


@BaseController.register('ClientStandStill')
class ClientStandStill(BaseController):
    """Walks on the spot."""

    def action_to_control(self, action: Any) -> ArticulationAction:
        sub_controller: Any = self.sub_controllers[0]
        return sub_controller.forward(forward_speed=0, rotation_speed=0, lateral_speed=0)

    def get_obs(self) -> dict[str, Any]:
        return {'finished': True}


@BaseController.register('ClientDiscrete')
class ClientDiscrete(BaseController):
    """Walks a little ahead, or turns a little, over a number of steps, whatever comes meanwhile."""

    def __init__(self, config: Any, robot: BaseRobot, scene: IScene) -> None:
        self.steps = 0
        self.action: int | None = None
        super().__init__(config=config, robot=robot, scene=scene)
        self.config: Any = config

    def action_to_control(self, action: Any) -> ArticulationAction:
        if self.action is None:
            self.action, self.steps = action[0], 0
        self.steps += 1
        seconds = self.config.steps_per_action / self.config.physics_frequency
        forward = self.config.forward_distance / seconds if self.action == FORWARD else 0.0
        turn = math.radians(self.config.rotation_angle) / seconds
        rotation = turn * ((self.action == LEFT) - (self.action == RIGHT))
        sub_controller: Any = self.sub_controllers[0]
        return sub_controller.forward(forward_speed=forward, rotation_speed=rotation, lateral_speed=0.0)

    def get_obs(self) -> dict[str, Any]:
        """Asking ends an action that has had its steps."""
        finished = self.action in (None, STOP) or self.steps >= self.config.steps_per_action
        if finished:
            self.action = None
        return {'finished': finished}


@BaseController.register('ClientFlash')
class ClientFlash(BaseController):
    """Is there at once."""

    def action_to_control(self, action: Any) -> ArticulationAction:
        from omni.isaac.core.utils.rotations import (
            euler_angles_to_quat,
            quat_to_euler_angles,
        )

        config: Any = self.config
        articulation: Any = self.robot.articulation
        position, orientation = articulation.get_world_pose()
        yaw = quat_to_euler_angles(orientation)[2]
        if action[0] == FORWARD:
            position = position + config.forward_distance * np.array([np.cos(yaw), np.sin(yaw), 0])
        elif action[0] in (LEFT, RIGHT):
            turn = math.radians(config.rotation_angle) * (1 if action[0] == LEFT else -1)
            orientation = euler_angles_to_quat(np.array([0.0, 0.0, yaw + turn]))
        joints = len(articulation.dof_names)
        isaac = articulation._articulation
        isaac.set_world_pose(position=position, orientation=orientation)
        isaac.set_world_velocity(np.zeros(6))
        isaac.set_joint_velocities(np.zeros(joints))
        isaac.set_joint_positions(np.zeros(joints))
        isaac.set_joint_efforts(np.zeros(joints))
        return ArticulationAction()

    def get_obs(self) -> dict[str, Any]:
        return {'finished': True}
