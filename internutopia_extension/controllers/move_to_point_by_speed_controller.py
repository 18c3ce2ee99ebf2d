"""Point controller: goes straight to a point of the ground plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.util.arrays import namespace_of
from internutopia.util.rotations import wrap_angle, yaw_of
from internutopia_extension.controllers.actions import BoxActionController
from internutopia_extension.controllers.navigation import (
    FORWARD_SPEED,
    ROTATION_SPEED,
    THRESHOLD,
    as_array,
    observed,
    planar_distance,
    setting,
)

if TYPE_CHECKING:
    import gymnasium

_IN_PLANE = (1.0, 1.0, 0.0)


@BaseController.register('MoveToPointBySpeedController')
class MoveToPointBySpeedController(BoxActionController):
    """Turn towards a goal and straight motion to it, by commands to the move-by-speed controller below it.

    Action: `[goal]`, a point `(3,)` [m] in the env frame whose z does not count. With heading error a, planar
    distance d and threshold t: rotation is `rotation_speed * clip(a, -1, 1)`; forward is
    `forward_speed * (1 - 2|a|/pi)^3 * min(d/2t, 1)^3`, and 0 beyond a quarter turn; both are 0 once d < t.

    Observation: `finished`, whether d < t; False before the first action.

    Attributes:
        goal_position: the goal `(3,)` with z = 0; NaN before the first action.
        last_threshold: the threshold of the last call [m]; NaN before the first action.
    """

    batched = True
    action_shape = (1, 3)
    action_meaning = '[goal position]'

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.forward_speed = setting(config, 'forward_speed', FORWARD_SPEED)
        self.rotation_speed = setting(config, 'rotation_speed', ROTATION_SPEED)
        self.threshold = setting(config, 'threshold', THRESHOLD)
        self.goal_position = self.state((3,), np.nan)
        self.last_threshold = self.state((), np.nan)

    @staticmethod
    def get_angle(start_position: Any, start_orientation: Any, goal_position: Any) -> NDArray[np.float32]:
        """Return the angle to the left from the heading to a goal, in (-pi, pi] [rad]."""
        way = as_array(goal_position) - as_array(start_position)
        heading = yaw_of(as_array(start_orientation))
        return wrap_angle(namespace_of(way).arctan2(way[..., 1], way[..., 0]) - heading)

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute speeds towards the goal of the action."""
        action = self.parsed(action, env_ids)
        position, orientation = self.robot.get_pose()
        return self.forward(
            start_position=position[env_ids],
            start_orientation=orientation[env_ids],
            goal_position=action[..., 0, :],
            forward_speed=self.forward_speed,
            rotation_speed=self.rotation_speed,
            threshold=self.threshold,
            env_ids=env_ids,
        )

    def forward(
        self,
        start_position: NDArray[np.float32],
        start_orientation: NDArray[np.float32],
        goal_position: Any,
        forward_speed: float = FORWARD_SPEED,
        rotation_speed: float = ROTATION_SPEED,
        threshold: float = THRESHOLD,
        env_ids: Any = ...,
    ) -> ArticulationAction:
        """Compute speeds [m/s, rad/s] from a pose (env frame) towards a goal, reached within `threshold` [m]."""
        xp = self.arrays.xp
        goal = self.arrays.asarray(goal_position, 'float32') * self.arrays.constant(_IN_PLANE)
        distance = planar_distance(start_position, goal)
        self.goal_position[env_ids] = goal
        self.last_threshold[env_ids] = xp.full_like(distance, threshold)
        angle = self.get_angle(start_position, start_orientation, goal)
        aligned = (1.0 - 2.0 / np.pi * xp.abs(angle)).clip(min=0.0)
        near = (distance / max(2.0 * threshold, 1e-9)).clip(max=1.0)  # a threshold of 0 is allowed
        factor = aligned * near
        reached = distance < threshold
        return self.forward_to(
            0,
            env_ids,
            forward_speed=xp.where(reached, 0.0, forward_speed * (factor * factor * factor)),
            rotation_speed=xp.where(reached, 0.0, rotation_speed * angle.clip(-1.0, 1.0)),
        )

    @override
    def get_obs(self) -> dict[str, Any]:
        """Return whether the goal is reached."""
        position, _ = self.robot.get_pose()
        return {'finished': observed(planar_distance(position, self.goal_position) < self.last_threshold)}

    @override
    def action_space(self) -> gymnasium.Space[Any]:
        """Goals up to 100 m away from the origin along each axis."""
        from gymnasium.spaces import Box

        return Box(-100.0, 100.0, self.action_shape)
