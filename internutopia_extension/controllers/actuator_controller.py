"""Actuator controller: raw control signals of the actuators that a model brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia_extension.controllers.actions import BoxActionController

if TYPE_CHECKING:
    import gymnasium


@BaseController.register('ActuatorController')
class ActuatorController(BoxActionController):
    """Controller of a robot that keeps the actuators of its model file (motors, muscles, position servos).

    Action: one number per actuator, in the model's order and units; the engine clips them to the actuators' ranges. As
    such actuators are no joint drives, the controls are written to the robot at once and the returned
    `ArticulationAction` is empty.

    Raises ValueError when created for a robot without actuators of its own.
    """

    batched = True
    pure = True
    commands = 'actuators'
    action_meaning = 'controls of the actuators'

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.control_names = robot.articulation.view.control_names
        if not self.control_names:
            raise ValueError(
                f'controller {config.name!r}: robot {robot.name!r} has joint drives and no actuators of its own; '
                'command it through a JointController'
            )
        self.action_shape = (len(self.control_names),)

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Write the controls to the robot; no joint targets are returned."""
        action = self.parsed(action, env_ids)
        if env_ids is ...:
            env_ids, action = np.array([self.scene.env_id]), action[None]
        self.robot.articulation.view.set_controls(env_ids, action)
        return ArticulationAction()

    @override
    def action_space(self) -> gymnasium.Space[Any]:
        """Controls within their ranges; -1 to 1 where an actuator has none."""
        from gymnasium.spaces import Box

        ranges = self.robot.articulation.view.control_ranges
        low, high = np.where(np.isfinite(ranges), ranges, [-1.0, 1.0]).astype(np.float32).T
        return Box(low, high)
