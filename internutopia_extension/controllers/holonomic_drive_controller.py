"""Holonomic drive: speeds of a base that moves in every direction, such as one on mecanum wheels."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.util.log import warn_once
from internutopia.util.rotations import length, yaw_rotate
from internutopia_extension.configs.controllers import HolonomicDriveControllerCfg
from internutopia_extension.controllers.speed_controllers import PlanarSpeedController


@BaseController.register('HolonomicDriveController')
class HolonomicDriveController(PlanarSpeedController):
    """Controller from speeds of a base to velocities of the joints `config.joint_names`: along x, y, and about z.

    Action: forward, lateral (left) [m/s] and rotation speed (left) [rad/s], in the frame of the base, each clamped to
    `action_limits`, with one warning (without one on a device). The turn within an env step counts: the base is
    commanded in the direction that it has in the middle of the step.
    """

    batched = True
    action_limits = (1.0, 1.0, 4.0)  # of Ridgeback: ridgeback_control/config/control.yaml

    def __init__(self, config: HolonomicDriveControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        if len(config.joint_names) != 3:
            raise ValueError(f'joint_names: expected 3 (along x, along y, about z), got {config.joint_names}')
        self.joint_subset = ArticulationSubset(robot.articulation, config.joint_names)

    @override
    def forward(
        self, forward_speed: Any = 0.0, rotation_speed: Any = 0.0, lateral_speed: Any = 0.0, env_ids: Any = ...
    ) -> ArticulationAction:
        """Compute joint velocities `(3,)` or `(n, 3)` for speeds [m/s, rad/s, m/s], a number or `(n,)` each."""
        xp, world = self.arrays.xp, self.scene.world
        yaw = self.robot.articulation.get_joint_positions(self.joint_subset.joint_indices)[env_ids][..., 2]
        still, limits = xp.zeros_like(yaw), self.arrays.constant(self.action_limits)
        commanded = xp.stack([still + forward_speed, still + lateral_speed, still + rotation_speed], axis=-1)
        speeds = xp.clip(commanded, -limits, limits)
        along, turning = speeds[..., :2], speeds[..., 2]
        if self._stuck is not None:
            self._stuck.update(length(along), turning, env_ids)
            if not np.array_equal(speeds, commanded, equal_nan=True):
                name, most = self.robot.articulation.view.name, self.action_limits
                warn_once('controller %r of robot %r: speeds beyond %s are clamped', self.config.name, name, most)
        along = yaw_rotate(yaw + 0.5 * world.step_dt * turning, along)
        velocities = xp.concat([along, turning[..., None]], axis=-1)
        return self.joint_subset.make_articulation_action(joint_velocities=velocities)
