"""Motion over the ground to a goal, by commands to a move-by-speed controller: to a point, and turns on the spot."""

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
from internutopia.util.arrays import namespace_of
from internutopia.util.rotations import ZERO_LENGTH, unit_quat, wrap_angle, yaw_of
from internutopia_extension.controllers.batch_values import BoxActionController, has_direction, observed

if TYPE_CHECKING:
    pass


FORWARD_SPEED = 1.0  # [m/s], where a config has None
ROTATION_SPEED = 8.0  # [rad/s]
THRESHOLD = 0.02  # [m or rad]
_TURNING_SPEED = 3.0  # [rad/s], on the spot
_IN_PLANE = (1.0, 1.0, 0.0)


def setting(config: ControllerCfg, name: str, default: float) -> float:
    """Return a number from a config; `default` where it is None or there is no such field."""
    value = getattr(config, name, None)
    return default if value is None else float(value)


def planar_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the distance `(...)` [m] of points `(..., 3)` seen from above."""
    x, y = a[..., 0] - b[..., 0], a[..., 1] - b[..., 1]
    return namespace_of(x).sqrt(x * x + y * y)


def as_array(values: Any) -> Any:
    """Return numbers as an array; an array of any kind as it is."""
    return values if hasattr(values, 'device') else np.asarray(values)


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
    action_limits = 100.0

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
        position, _ = self.robot.get_pose()
        return {'finished': observed(planar_distance(position, self.goal_position) < self.last_threshold)}


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
    action_limits = 1.0

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.rotation_speed = setting(config, 'rotation_speed', _TURNING_SPEED)
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
        goals = super().parse_actions(actions)
        if (np.square(goals).sum(axis=-1) < ZERO_LENGTH**2).any():
            return BaseController.parse_actions(self, actions)  # names the one at fault
        return goals

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
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
        rotation_speed: float = _TURNING_SPEED,
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
        _, orientation = self.robot.get_pose()
        error = self.get_delta_z_rot(orientation, self.goal_orientation)
        return {'finished': observed(self.arrays.xp.abs(error) < self.last_threshold)}
