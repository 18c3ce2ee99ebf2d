"""The controllers that walk: at a speed, on the spot, and by discrete actions.

They get generic `ControllerCfg` with extra fields, and there is one object per env.
"""

# pyright: reportIncompatibleMethodOverride=false
# written for the base classes of 2.x

from __future__ import annotations

import math
from typing import Any

import numpy as np

import internutopia.core.util.gym as gym_util  # pyright: ignore[reportMissingImports]
from internutopia.core.robot.articulation import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia_extension.configs.joint_names import H1_GYM_19

STOP, FORWARD, LEFT, RIGHT = range(4)
HEIGHTS = 424  # samples of the ground that the policy sees
STEPS_PER_INFERENCE, INFERENCES_PER_SCAN = 4, 5
# of the policy: times of its inputs [s], scales, and the pose that its actions are relative to [rad]
INFERENCE_DT, GAIT_PERIOD = 1 / 48, 0.65
SPIN_SCALE, VELOCITY_SCALE, ACTION_SCALE = 0.25, 0.05, 0.25
HOME = {'hip_pitch': -0.4, 'knee': 0.8, 'ankle': -0.4}


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
        self.order = gym_util.gym_adapter(H1_GYM_19, config.joint_names)
        self.home = np.array([HOME.get(name.split('_', 1)[1].removesuffix('_joint'), 0.0) for name in H1_GYM_19])
        self.last_action = torch.zeros(1, len(H1_GYM_19))
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

        from internutopia.core.util.math import quat_rotate_inverse  # pyright: ignore[reportMissingImports]

        inference = self.calls // STEPS_PER_INFERENCE
        if inference % INFERENCES_PER_SCAN == 0 and 'tp_pointcloud' in self.robot.sensors:
            self._scan()
        pelvis = self.robot.get_robot_base()
        turned = torch.tensor(pelvis.get_world_pose()[1]).reshape(1, -1)
        spin = torch.tensor(pelvis.get_angular_velocity()[:]).reshape(1, -1)
        spin = quat_rotate_inverse(turned, spin)
        down = quat_rotate_inverse(turned, torch.tensor([[0.0, 0.0, -1.0]]))
        # numbers of one type: bmm takes no others
        assert torch.bmm(turned.view(1, 1, 4), turned.view(1, 4, 1)).item() > 0.99
        assert torch.bmm(spin.view(1, 1, 3), down.view(1, 3, 1)).isfinite().all()
        positions = self.order.sim2gym(self.joint_subset.get_joint_positions())
        positions -= self.home  # in place, as a copy of the caller's own allows
        velocities = self.order.sim2gym(self.joint_subset.get_joint_velocities())
        angle = 2 * math.pi * inference * INFERENCE_DT / GAIT_PERIOD
        inputs = [
            spin * SPIN_SCALE,
            down,
            torch.tensor([command]),
            torch.tensor(positions[np.newaxis]),
            torch.tensor(velocities[np.newaxis]) * VELOCITY_SCALE,
            self.last_action,
            self.heights,
            torch.tensor([[math.cos(angle), math.sin(angle)]]),
        ]
        with torch.inference_mode():
            self.last_action = self.policy(torch.cat(inputs, dim=-1).float())
        return self.order.gym2sim(self.home + ACTION_SCALE * self.last_action[0].numpy())

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
