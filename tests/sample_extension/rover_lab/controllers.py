"""Controllers: both hand joint velocities to a built-in, batched joint controller."""
# pyright: reportAttributeAccessIssue=false, reportIncompatibleMethodOverride=false, reportOptionalMemberAccess=false

from typing import Any

import gymnasium
import numpy as np

from internutopia.core.robot.articulation import ArticulationAction
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from rover_lab.configs import RoverSpeedControllerCfg


@BaseController.register('RoverSpeedController')
class RoverSpeedController(BaseController):
    def __init__(self, config: RoverSpeedControllerCfg, robot: BaseRobot, scene: IScene):
        self.count = 0
        self.last = np.zeros(3, np.float32)
        super().__init__(config=config, robot=robot, scene=scene)

    def forward(self, forward_speed: float = 0, lateral_speed: float = 0, rotation_speed: float = 0):
        speeds = np.array([forward_speed, lateral_speed, rotation_speed], np.float32)
        return self.sub_controllers[0].forward(joint_velocities=self.config.gain * speeds)

    def action_to_control(self, action: list | np.ndarray) -> ArticulationAction:
        assert len(action) == 3, 'action must contain 3 elements'
        self.count += 1
        self.last[:] = action
        return self.forward(action[0], action[1], action[2])

    def get_obs(self) -> dict:
        return {'count': self.count, 'last': self.last, 'joints': self.get_joint_subset().get_joint_positions()}


@BaseController.register('BatchRoverSpeedController')
class BatchRoverSpeedController(BaseController):
    batched = True

    def __init__(self, config: RoverSpeedControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.count = self.state(dtype=np.int64)
        self.last = self.state((3,))

    def parse_action(self, action: Any) -> np.ndarray:
        return box_action(action, (3,), ' (forward, lateral, rotation speed)')

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        self.count[env_ids] += 1
        self.last[env_ids] = self.parsed(action, env_ids)
        return self.forward_to(0, env_ids, joint_velocities=self.config.gain * self.last[env_ids])

    def get_obs(self) -> dict:
        return {'count': self.count, 'last': self.last, 'joints': self.get_joint_subset().get_joint_positions()}

    def action_space(self) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Box(-1.0, 1.0, (3,))
