"""Differential drive: speeds on two wheels."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.util.arrays import namespace_of
from internutopia_extension.configs.controllers import DifferentialDriveControllerCfg
from internutopia_extension.controllers.speed_controllers import SpeedController

WHEEL_JOINTS = ('left_wheel_joint', 'right_wheel_joint')


@BaseController.register('DifferentialDriveController')
class DifferentialDriveController(SpeedController):
    """Controller from speed and turning rate to velocities of the joints `left_wheel_joint` and `right_wheel_joint`.

    Action: forward speed [m/s] and rotation speed [rad/s], left turns positive. Wheel radius and base are those of the
    config times the robot's scale.
    """

    batched = True
    action_shape = (2,)
    action_meaning = 'forward speed, rotation speed'
    action_limits = (1.0, 4.0)

    def __init__(self, config: DifferentialDriveControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        scale = float(robot.get_robot_scale()[0])
        self.wheel_radius = config.wheel_radius * scale
        self.wheel_base = config.wheel_base * scale
        self.joint_subset = ArticulationSubset(robot.articulation, WHEEL_JOINTS)

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        action = self.parsed(action, env_ids)
        return self.forward(forward_speed=action[..., 0], rotation_speed=action[..., 1], env_ids=env_ids)

    def forward(self, forward_speed: Any = 0, rotation_speed: Any = 0, env_ids: Any = ...) -> ArticulationAction:
        """Compute wheel velocities for speeds in m/s and rad/s, one of each or `(n,)`."""
        if self._stuck is not None:
            self._stuck.update(forward_speed, rotation_speed, env_ids)
        turn = rotation_speed * self.wheel_base
        left = (2.0 * forward_speed - turn) / (2.0 * self.wheel_radius)
        right = (2.0 * forward_speed + turn) / (2.0 * self.wheel_radius)
        return ArticulationAction(
            joint_velocities=namespace_of(left).stack([left, right], axis=-1),
            joint_indices=self.joint_subset.joint_indices,
        )
