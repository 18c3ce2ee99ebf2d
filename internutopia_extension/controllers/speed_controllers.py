"""Controllers of a base's speeds: one that stands still under a moving command is found."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.robot.stuck import StuckDetector
from internutopia.core.scene.scene import IScene
from internutopia_extension.controllers.batch_values import BoxActionController


class SpeedController(BoxActionController):
    """A controller that commands speeds, whose robot can be stuck; on a device that is not checked."""

    commands = 'drives'

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self._stuck = None if scene.world.arrays.on_device else StuckDetector(self)

    @override
    def find_stuck(self) -> Any:
        """Return True if the robot is commanded to move but stands still; False on a device, without a check."""
        return False if self._stuck is None else self._stuck.stuck


class PlanarSpeedController(SpeedController):
    """A controller of a base that moves in every direction of the ground.

    Action: forward, lateral (left) [m/s] and rotation speed (left) [rad/s], in the frame of the base.
    """

    action_shape = (3,)
    action_meaning = 'forward speed, lateral speed, rotation speed'

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        action = self.parsed(action, env_ids)
        return self.forward(action[..., 0], action[..., 2], action[..., 1], env_ids)

    def forward(
        self, forward_speed: Any = 0.0, rotation_speed: Any = 0.0, lateral_speed: Any = 0.0, env_ids: Any = ...
    ) -> ArticulationAction:
        """Compute what drives the joints at speeds [m/s, rad/s, m/s], a number or `(n,)` each."""
        raise NotImplementedError
