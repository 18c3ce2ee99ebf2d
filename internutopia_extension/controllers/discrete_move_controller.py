"""Discrete steps of a robot that walks or drives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.context import RobotContext
from internutopia.core.robot.controller import BaseController
from internutopia.core.scene.scene import IScene
from internutopia.util.rotations import wrap_angle, yaw_of, yaw_rotate
from internutopia_extension.configs.controllers import DiscreteMoveControllerCfg
from internutopia_extension.controllers.discrete import FORWARD, STOP, TURNS, DiscreteController

_SLOWING = 0.1  # m or rad, before the end, from where on a robot slows down
_SLOWEST = 0.3  # of the full speed
_STEERING = 2.0  # [1/s], turning rate for a heading error during a step forward
_ENOUGH = 0.5  # part of a step; a robot that went less when patience was over was held by something


@BaseController.register('DiscreteMoveController')
class DiscreteMoveController(DiscreteController):
    """Steps of a fixed length and turns of a fixed angle, by commands to the move-by-speed controller below it.

    Send the action at each step of the env until `finished`; what is sent before is not looked at, the action that was
    begun goes on. Length and angle are measured from where the robot stood at the beginning of the action. A step
    forward that has not come half of its way in `config.patience` times the time that it takes has `collided`.
    """

    batched = True

    def __init__(self, config: DiscreteMoveControllerCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self.cfg = config
        self.start = self.state((3,), 0.0, np.float64)  # x, y [m] and yaw [rad] at the beginning of the action
        self.end_time = self.state((), 0.0, np.float64)  # [s], when patience is over
        durations = (0.0, self.forward_distance / config.forward_speed, *2 * [self.turn_angle / config.rotation_speed])
        self._patience = config.patience * np.array(durations)

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute speeds of the action that is under way, or of a new one."""
        action = self.numbers_of(self.parsed(action, env_ids))
        fresh = self.finished()[env_ids] | (self.action[env_ids] < 0)
        self.action[env_ids] = np.where(fresh, action, self.action[env_ids])
        self.actions[env_ids] += fresh
        self.start[env_ids] = np.where(fresh[..., None], self._pose()[env_ids], self.start[env_ids])
        end_time = self._times()[env_ids] + self._patience[action]
        self.end_time[env_ids] = np.where(fresh, end_time, self.end_time[env_ids])
        left, heading_error = (values[env_ids] for values in self._left())
        forward = self.action[env_ids] == FORWARD
        turns = TURNS[self.action[env_ids]]
        share = np.clip(left / _SLOWING, _SLOWEST, 1.0)
        return self.forward_to(
            0,
            env_ids,
            forward_speed=np.where(forward, share * self.cfg.forward_speed, 0.0),
            rotation_speed=np.where(forward, _STEERING * heading_error, turns * share * self.cfg.rotation_speed),
        )

    @override
    def finished(self) -> NDArray[np.bool_]:
        """Return True if the robot has arrived, or patience is over."""
        left, _ = self._left()
        return (self.action >= 0) & ((self.action == STOP) | (left <= self._tolerance()) | self._late())

    @override
    def collided(self) -> NDArray[np.bool_]:
        """Return True if a step forward was given up before it came half of its way."""
        left, _ = self._left()
        return (self.action == FORWARD) & self._late() & (left > (1.0 - _ENOUGH) * self.forward_distance)

    def _left(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the rest of each action [m or rad], and the turn to the left to the heading of its beginning [rad]."""
        pose = self._pose()
        way, heading = pose[..., :2] - self.start[..., :2], self.start[..., 2]
        gone = yaw_rotate(-heading, way)[..., 0]
        turned = wrap_angle(pose[..., 2] - heading)
        forward = self.action == FORWARD
        turns = TURNS[np.maximum(self.action, 0)]
        return np.where(forward, self.forward_distance - gone, self.turn_angle - turns * turned), -turned

    def _pose(self) -> NDArray[np.float64]:
        """Return position seen from above and yaw `(..., 3)` [m, rad]."""
        position, orientation = self.robot.get_pose()
        return np.concatenate([position[..., :2], yaw_of(orientation)[..., None]], axis=-1).astype(np.float64)

    def _tolerance(self) -> NDArray[np.float64]:
        return np.where(self.action == FORWARD, self.cfg.distance_tolerance, self.cfg.angle_tolerance)

    def _late(self) -> NDArray[np.bool_]:
        return self._times() >= self.end_time

    def _times(self) -> NDArray[np.float64]:
        return self.scene.world.times[self.scene.env_id]
