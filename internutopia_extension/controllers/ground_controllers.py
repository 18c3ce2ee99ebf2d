"""Motion over the ground to a goal, by commands to a move-by-speed controller: to a point, and turns on the spot.

Robots that can walk sideways, those whose move-by-speed controller takes a `lateral_speed`, drift: they stay at a goal
that they have reached by going back when they stray, and it counts as reached until they are twice the threshold away
(hysteresis).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.util.arrays import namespace_of
from internutopia.util.rotations import ZERO_LENGTH, unit_quat, wrap_angle, yaw_of, yaw_rotate
from internutopia_extension.controllers.batch_values import BoxActionController, has_direction, observed

FORWARD_SPEED = 1.0  # [m/s], where a config has None
ROTATION_SPEED = 8.0  # [rad/s]
THRESHOLD = 0.02  # [m or rad]
_TURNING_SPEED = 3.0  # [rad/s], on the spot
_IN_PLANE = (1.0, 1.0, 0.0)
_RELEASE = 2.0  # times the threshold, from where on a goal that was reached is not any more
_STRAYED, _BACK = 1.6, 0.8  # times the threshold, from where on a robot goes back to its goal, and until where
SAME = 1e-3  # [m], between two commands of one goal
_NEAR = 0.6  # [m], within which a robot goes back to a goal that it has reached, without a turn
_BRAKING = 0.3  # [m/s²], with which one that walks comes to a stop
_RETURN_RATE = 1.0  # [1/s], speed of going back, per distance
_RETURN_SPEEDS = 0.12, 0.4  # [m/s], slowest and fastest; policies take less than 0.1 for a command to stand
_TURN_SPEED = 0.12  # [rad/s], slowest of turning back
_SPOT = 0.05  # [m], that a robot which turns may be away from where it began


def setting(config: ControllerCfg, name: str, default: float) -> float:
    """Return a number from a config; `default` where it is None or there is no such field."""
    value = getattr(config, name, None)
    return default if value is None else float(value)


def planar_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the distance `(...)` [m] of points `(..., 3)` seen from above."""
    x, y = a[..., 0] - b[..., 0], a[..., 1] - b[..., 1]
    return namespace_of(x).sqrt(x * x + y * y)


def stays(reached: Any, distance: Any, threshold: Any) -> Any:
    """Return True `(...)` where a goal at a distance is reached, given where it was before."""
    return (distance < threshold) | (reached & (distance < _RELEASE * threshold))


def strays(strayed: Any, distance: Any, threshold: Any) -> Any:
    """Return True `(...)` where a robot that reached a goal should go back, given where it does so already."""
    xp = namespace_of(distance)
    return distance > threshold * xp.where(strayed, _BACK, _STRAYED)


def braked(speed: Any, way: Any) -> Any:
    """Return the speed `(...)` [m/s] of a robot that walks and has to stop after a `way` `(...)` [m]."""
    xp = namespace_of(way)
    limit = xp.sqrt(2.0 * _BRAKING * way)
    return xp.where(limit < speed, limit, speed)


def speeds_to(way: Any, heading: Any) -> Any:
    """Return forward and lateral speed `(..., 2)` [m/s] straight to a place that is `way` `(..., 2)` [m] away."""
    xp = namespace_of(way)
    distance = xp.sqrt((way * way).sum(axis=-1))
    speed = (_RETURN_RATE * distance).clip(*_RETURN_SPEEDS)
    return yaw_rotate(-heading, way) * (speed / distance.clip(min=1e-6))[..., None]


def walks_sideways(controller: BaseController) -> bool:
    """Return True if a controller commands one that takes a lateral speed, through others perhaps."""
    subs = controller.sub_controllers[:1]
    return any(_takes_lateral_speed(type(sub)) or walks_sideways(sub) for sub in subs)


@functools.cache
def _takes_lateral_speed(cls: type[Any]) -> bool:
    return hasattr(cls, 'forward') and 'lateral_speed' in inspect.signature(cls.forward).parameters


def as_array(values: Any) -> Any:
    """Return numbers as an array; an array of any kind as it is."""
    return values if hasattr(values, 'device') else np.asarray(values)


@BaseController.register('MoveToPointBySpeedController')
class MoveToPointBySpeedController(BoxActionController):
    """Motion to a point (x, y, z) [m]: turn towards it, then straight ahead, with a move-by-speed sub-controller.

    Action: `[goal]`, a point `(3,)` [m] in the env frame whose z does not count. With heading error a, planar
    distance d and threshold t: rotation is `rotation_speed * clip(a, -1, 1)`; forward is
    `forward_speed * (1 - 2|a|/pi)^3 * min(d/2t, 1)^3`, and 0 beyond a quarter turn; both are 0 once d < t. A robot that
    can walk sideways brakes at 0.3 m/s², and then stays: straight back to the goal from 1.6 t on, without a turn.

    Observation: `finished`, whether d < t, or of such a robot, the goal was reached and d < 2t still; False before the
    first action.

    Attributes:
        goal_position: the goal `(3,)` with z = 0; NaN before the first action.
        last_threshold: the threshold of the last call [m]; NaN before the first action.
        reached: whether that goal was reached.
        holds: whether the robot stays there, without a turn.
        strayed: whether it goes back.
    """

    batched = True
    action_shape = (1, 3)
    action_meaning = '[goal position]'
    sub_command = ('forward_speed', 'rotation_speed')
    action_limits = 100.0

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.forward_speed = setting(config, 'forward_speed', FORWARD_SPEED)
        self.rotation_speed = setting(config, 'rotation_speed', ROTATION_SPEED)
        self.threshold = setting(config, 'threshold', THRESHOLD)
        self.goal_position = self.state((3,), np.nan)
        self.last_threshold = self.state((), np.nan)
        self.reached = self.state(dtype=np.bool_)
        self.holds = self.state(dtype=np.bool_)
        self.strayed = self.state(dtype=np.bool_)

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
        threshold: Any = THRESHOLD,
        env_ids: Any = ...,
    ) -> ArticulationAction:
        """Compute speeds [m/s, rad/s] from a pose (env frame) towards a goal.

        It is reached within `threshold` [m], a number or `(n,)`; with 0, it is one to go through, not to stay at.
        """
        xp = self.arrays.xp
        goal = self.arrays.asarray(goal_position, 'float32') * self.arrays.constant(_IN_PLANE)
        distance = planar_distance(start_position, goal)
        same = planar_distance(goal, self.goal_position[env_ids]) < SAME  # NaN where there was none
        reached = stays(self.reached[env_ids] & same, distance, threshold)
        self.goal_position[env_ids] = goal
        self.last_threshold[env_ids] = stay_within = xp.zeros_like(distance) + threshold
        angle = self.get_angle(start_position, start_orientation, goal)
        aligned = (1.0 - 2.0 / np.pi * xp.abs(angle)).clip(min=0.0)
        near = (distance / (2.0 * threshold + 1e-9)).clip(max=1.0)  # a threshold of 0 is allowed
        factor = aligned * near
        ahead, turn = forward_speed * (factor * factor * factor), rotation_speed * angle.clip(-1.0, 1.0)
        if not walks_sideways(self):
            there = distance < threshold
            speeds = {'forward_speed': xp.where(there, 0.0, ahead), 'rotation_speed': xp.where(there, 0.0, turn)}
            return self.forward_to(0, env_ids, **speeds)
        holds = reached | (self.holds[env_ids] & same & (distance < _NEAR))
        strayed = holds & strays(self.strayed[env_ids], distance, threshold)
        self.reached[env_ids], self.holds[env_ids], self.strayed[env_ids] = reached, holds, strayed
        back = speeds_to((goal - start_position)[..., :2], yaw_of(as_array(start_orientation)))
        back = xp.where(strayed[..., None], back, 0.0)
        ahead = xp.where(stay_within > 0.0, braked(ahead, distance), ahead)
        return self.forward_to(
            0,
            env_ids,
            forward_speed=xp.where(holds, back[..., 0], ahead),
            rotation_speed=xp.where(holds, 0.0, turn),
            lateral_speed=back[..., 1],
        )

    @override
    def get_obs(self) -> dict[str, Any]:
        position, _ = self.robot.get_pose()
        distance = planar_distance(position, self.goal_position)
        return {'finished': observed(stays(self.reached, distance, self.last_threshold))}


@BaseController.register('RotateController')
class RotateController(BoxActionController):
    """Turn to the yaw of a quaternion (w, x, y, z), with a move-by-speed sub-controller.

    Action: `[goal]`, a quaternion `(4,)` of any length but zero; only its yaw counts. With yaw error e and threshold t,
    rotation is `rotation_speed * clip(e, -1, 1)`, and 0 once |e| < t. In one array `(1, 4)`, as the array API sends it,
    a quaternion of length zero (shorter than 1e-15) means no goal: the robot does not turn. In a list it is refused.
    A robot that can walk sideways turns on the spot: it goes back to where it got the goal, and turns back from 1.6 t.

    Observation: `finished`, whether |e| < t, or of such a robot, the goal was reached and |e| < 2t still; False before
    the first action.

    Attributes:
        goal_orientation: the goal `(4,)`, unit length; NaN before the first action.
        last_threshold: the threshold of the last call [rad]; NaN before the first action.
        reached: whether that goal was reached.
        turns_back: whether the robot turns back to it.
        spot: where it got the goal, or was commanded again after a pause `(2,)` [m].
        strayed: whether it goes back there.
        last_time: of the last call [s].
    """

    batched = True
    action_shape = (1, 4)
    action_meaning = '[goal orientation as a quaternion]'
    sub_command = ('forward_speed', 'rotation_speed')
    action_limits = 1.0

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.rotation_speed = setting(config, 'rotation_speed', _TURNING_SPEED)
        self.threshold = setting(config, 'threshold', THRESHOLD)
        self.goal_orientation = self.state((4,), np.nan)
        self.last_threshold = self.state((), np.nan)
        self.reached = self.state(dtype=np.bool_)
        self.turns_back = self.state(dtype=np.bool_)
        self.spot = self.state((2,))
        self.strayed = self.state(dtype=np.bool_)
        self.last_time = self.state((), -np.inf, np.float64)

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
        away = xp.abs(error)
        turn = xp.where(away >= threshold, rotation_speed * error.clip(-1.0, 1.0), 0.0)  # also if the error is NaN
        same = xp.all(goal == self.goal_orientation[env_ids], axis=-1)
        reached = stays(self.reached[env_ids] & same, away, threshold)
        self.goal_orientation[env_ids] = goal
        self.last_threshold[env_ids] = xp.full_like(error, threshold)
        if not walks_sideways(self):
            return self.forward_to(0, env_ids, forward_speed=xp.zeros_like(error), rotation_speed=turn)
        turns_back = reached & strays(self.turns_back[env_ids], away, threshold)
        self.reached[env_ids], self.turns_back[env_ids] = reached, turns_back
        turning_back = xp.where(error < 0.0, -1.0, 1.0) * (rotation_speed * away).clip(_TURN_SPEED, rotation_speed)
        back = self._back_to_spot(same, start_orientation, env_ids)
        return self.forward_to(
            0,
            env_ids,
            forward_speed=back[..., 0],
            rotation_speed=xp.where(reached, xp.where(turns_back, turning_back, 0.0), turn),
            lateral_speed=back[..., 1],
        )

    def _back_to_spot(self, same: Any, orientation: Any, env_ids: Any) -> Any:
        """Return forward and lateral speed `(..., 2)` [m/s] to the spot; `same` is False where the goal is new."""
        xp, world = self.arrays.xp, self.scene.world
        position = self.robot.get_pose()[0][env_ids][..., :2]
        now = world.times[self.scene.env_id][env_ids] if self.batch_shape else world.times[self.scene.env_id]
        same = same & (now - self.last_time[env_ids] < 1.5 * world.step_dt)
        self.last_time[env_ids] = now
        spot = xp.where(same[..., None], self.spot[env_ids], position)
        self.spot[env_ids] = spot
        strayed = same & strays(self.strayed[env_ids], planar_distance(position, spot), _SPOT / _STRAYED)
        self.strayed[env_ids] = strayed
        return xp.where(strayed[..., None], speeds_to(spot - position, yaw_of(as_array(orientation))), 0.0)

    @override
    def get_obs(self) -> dict[str, Any]:
        _, orientation = self.robot.get_pose()
        error = self.arrays.xp.abs(self.get_delta_z_rot(orientation, self.goal_orientation))
        return {'finished': observed(stays(self.reached, error, self.last_threshold))}
