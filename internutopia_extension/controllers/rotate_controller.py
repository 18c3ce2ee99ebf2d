"""Rotation controller: turns on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.util.rotations import ZERO_LENGTH, unit_quat, wrap_angle, yaw_of
from internutopia_extension.controllers.actions import BoxActionController, has_direction
from internutopia_extension.controllers.navigation import THRESHOLD, as_array, observed, setting

if TYPE_CHECKING:
    import gymnasium

_ROTATION_SPEED = 3.0  # [rad/s], where a config has None


@BaseController.register('RotateController')
class RotateController(BoxActionController):
    """Turn to a heading, by commands to the move-by-speed controller below it.

    Action: `[goal]`, a quaternion `(4,)` of any length but zero; only its yaw counts. With yaw error e and threshold t,
    rotation is `rotation_speed * clip(e, -1, 1)`, and 0 once |e| < t. In one array `(1, 4)`, as the array API sends it,
    a quaternion of length zero (shorter than 1e-15) means no goal: the robot does not turn. In a list it is refused.

    Observation: `finished`, whether |e| < t; False before the first action.

    Attributes:
        goal_orientation: the goal `(4,)`, unit length; NaN before the first action.
        last_threshold: the threshold of the last call [rad]; NaN before the first action.
    """

    batched = True
    action_shape = (1, 4)
    action_meaning = '[goal orientation as a quaternion]'

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.rotation_speed = setting(config, 'rotation_speed', _ROTATION_SPEED)
        self.threshold = setting(config, 'threshold', THRESHOLD)
        self.goal_orientation = self.state((4,), np.nan)
        self.last_threshold = self.state((), np.nan)

    @staticmethod
    def get_delta_z_rot(start_orientation: Any, goal_orientation: Any) -> NDArray[np.float32]:
        """Return the angle to turn left from one yaw to the other, in (-pi, pi] [rad]."""
        return wrap_angle(yaw_of(as_array(goal_orientation)) - yaw_of(as_array(start_orientation)))

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Check one env's action `(1, 4)`. ValueError for a quaternion of length zero, too, unless all is one array."""
        goal = super().parse_action(action)
        if not isinstance(action, np.ndarray) and not has_direction(goal):
            raise ValueError(f'expected {self.action_meaning} of a length other than zero, got {action!r}')
        return goal

    @override
    def parse_actions(self, actions: Sequence[Any]) -> NDArray[Any]:
        """Check the actions of several envs, `(n, 1, 4)`."""
        goals = super().parse_actions(actions)
        if (np.square(goals).sum(axis=-1) < ZERO_LENGTH**2).any():
            return BaseController.parse_actions(self, actions)  # names the one at fault
        return goals

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute the turning rate towards the goal of the action."""
        action = self.parsed(action, env_ids)
        _, orientation = self.robot.get_pose()
        return self.forward(
            start_orientation=orientation[env_ids],
            goal_orientation=action[..., 0, :],
            rotation_speed=self.rotation_speed,
            threshold=self.threshold,
            env_ids=env_ids,
        )

    def forward(
        self,
        start_orientation: NDArray[np.float32],
        goal_orientation: Any,
        rotation_speed: float = _ROTATION_SPEED,
        threshold: float = THRESHOLD,
        env_ids: Any = ...,
    ) -> ArticulationAction:
        """Compute the turning rate [rad/s] from one orientation to another; reached within `threshold` [rad] of yaw.

        It is 0 for a goal of length zero.
        """
        xp = self.arrays.xp
        goal = unit_quat(self.arrays.asarray(goal_orientation, 'float32'))
        error = self.get_delta_z_rot(start_orientation, goal)
        self.goal_orientation[env_ids] = goal
        self.last_threshold[env_ids] = xp.full_like(error, threshold)
        return self.forward_to(
            0,
            env_ids,
            forward_speed=xp.zeros_like(error),
            rotation_speed=xp.where(xp.abs(error) >= threshold, rotation_speed * error.clip(-1.0, 1.0), 0.0),
        )

    @override
    def get_obs(self) -> dict[str, Any]:
        """Return whether the goal is reached."""
        _, orientation = self.robot.get_pose()
        error = self.get_delta_z_rot(orientation, self.goal_orientation)
        return {'finished': observed(self.arrays.xp.abs(error) < self.last_threshold)}

    @override
    def action_space(self) -> gymnasium.Space[Any]:
        """Quaternions of any length."""
        from gymnasium.spaces import Box

        return Box(-1.0, 1.0, self.action_shape)
