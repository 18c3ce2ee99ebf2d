"""Discrete actions (stop, a step forward, a turn; walked, driven or teleported), and a counter of actions to come."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.context import RobotContext
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.scene.scene import IScene
from internutopia.model.groups import BOTH_GROUP, COLLIDER_GROUP
from internutopia.navigation.agent import Agent
from internutopia.util.rotations import quat_from_yaw, quat_multiply, unit_quat, wrap_angle, yaw_of, yaw_rotate
from internutopia_extension.configs.controllers import (
    ChunkControllerCfg,
    DiscreteControllerCfg,
    DiscreteMoveControllerCfg,
    FlashControllerCfg,
)
from internutopia_extension.controllers.batch_values import BoxActionController, observed
from internutopia_extension.controllers.ground_controllers import walks_sideways

STOP, FORWARD, LEFT, RIGHT = range(4)
"""Actions, by the numbers of Habitat and VLN-CE."""
_MEANING = ' (0 stop, 1 forward, 2 left, 3 right)'
TURNS = np.array([0.0, 0.0, 1.0, -1.0])
"""Turn of each action, as a multiple of the angle of a turn to the left."""


class DiscreteController(BaseController):
    """A controller whose action is `[k]`: 0 stop, 1 forward, 2 left, 3 right. The nearest whole number counts.

    Observation:

    - `finished`: whether the action has ended; the next one can be sent. False before the first.
    - `stopped`: whether the action was to stop.
    - `actions`: number of actions that have begun.
    - `collided`: whether something was in the way of the action.
    """

    def __init__(self, config: DiscreteControllerCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self.forward_distance = config.forward_distance
        self.turn_angle = config.turn_angle
        self.action = self.state((), -1, np.int64)
        self.actions = self.state((), 0, np.int64)

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Check one env's action `(1,)`. ValueError with the expected and the given value.

        Of an array, as a learner gives it, every number counts as the nearest action.
        """
        number = box_action(action, (1,), _MEANING)
        if not isinstance(action, np.ndarray) and not STOP <= round(float(number[0])) <= RIGHT:
            raise ValueError(f'expected 1 number from 0 to 3{_MEANING}, got {action!r}')
        return number

    def numbers_of(self, action: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the actions `(...)` for numbers `(..., 1)`: the nearest."""
        return np.clip(np.rint(action[..., 0]), STOP, RIGHT).astype(np.int64)

    @abstractmethod
    def finished(self) -> NDArray[np.bool_]:
        """Return True where the action of an env has ended `batch_shape`."""

    @abstractmethod
    def collided(self) -> NDArray[np.bool_]:
        """Return True where the action of an env was obstructed `batch_shape`."""

    @override
    def get_obs(self) -> dict[str, Any]:
        return {
            'finished': observed(self.finished()),
            'stopped': observed(self.action == STOP),
            'actions': observed(self.actions),
            'collided': observed(self.collided()),
        }

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of numbers from 0 to 3."""
        return Box(STOP, RIGHT, (1,))


_SLOWING = 0.1  # m or rad, before the end, from where on a robot slows down
_SLOWEST = 0.3  # of the full speed
_STEERING = 2.0  # [1/s], turning rate for a heading error during a step forward
_WALKED = 0.018, 0.03  # m, rad: largest distance from the end of an action of a robot that walks sideways, too
_NEAR, _STAYS = 0.008, 0.05  # m, from where on it goes back during an action, and when told to stop
_LEAST, _RETURN = 0.12, 0.3  # m/s or rad/s, with which it does; policies take less than 0.1 for a command to stand
_ELSEWHERE = 0.5  # m, from where on a robot that is commanded to stop has been moved by others, and stays there
_CORRECTING = 4.0  # s, that such a robot has in addition
_ASIDE = 0.05  # m off its line, from where on a robot that must not slide has been pushed aside
_ENOUGH = 0.5  # part of a step; a robot that went less when its time was over was obstructed


@BaseController.register('DiscreteMoveController')
class DiscreteMoveController(DiscreteController):
    """Steps of a fixed length and turns of a fixed angle, with a move-by-speed sub-controller.

    Send the action at each step of the env until `finished`; what is sent before is ignored, the action that was
    begun continues. Length and angle are measured from where the robot stood at the beginning of the action. A step
    forward that has not come half of its way in `config.patience` times the time that it takes has `collided`, and so
    has one that is pushed aside, if `config.allow_sliding` is off.

    A robot that can walk sideways also corrects what it drifts, and where it went too far, for up to 4 s more: it has
    arrived within 1.8 cm and 0.03 rad of where the action leads to. Told to stop, it stays where it got that action.
    """

    batched = True
    sub_command = ('forward_speed', 'rotation_speed')

    def __init__(self, config: DiscreteMoveControllerCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self.cfg = config
        self.start = self.state((3,), 0.0, np.float64)  # x, y [m] and yaw [rad] at the beginning of the action
        self.end_time = self.state((), 0.0, np.float64)  # [s], of the action at the latest
        durations = (0.0, self.forward_distance / config.forward_speed, *2 * [self.turn_angle / config.rotation_speed])
        self._patience = config.patience * np.array(durations)

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute speeds of the action that is under way, or of a new one."""
        action = self.numbers_of(self.parsed(action, env_ids))
        fresh = self.finished()[env_ids] | (self.action[env_ids] < 0)
        away = np.linalg.norm(self._pose()[env_ids][..., :2] - self.start[env_ids][..., :2], axis=-1)
        stays = (action == STOP) & (self.action[env_ids] == STOP) & (away < _ELSEWHERE)
        self.action[env_ids] = np.where(fresh, action, self.action[env_ids])
        self.actions[env_ids] += fresh
        begins = (fresh & ~stays)[..., None]
        self.start[env_ids] = np.where(begins, self._pose()[env_ids], self.start[env_ids])
        end_time = self._times()[env_ids] + self._patience[action] + _CORRECTING * walks_sideways(self)
        self.end_time[env_ids] = np.where(fresh, end_time, self.end_time[env_ids])
        left, heading_error = (values[env_ids] for values in self._left())
        forward = self.action[env_ids] == FORWARD
        turns = TURNS[self.action[env_ids]]
        share = np.clip(left / _SLOWING, _SLOWEST, 1.0)
        if walks_sideways(self):
            return self._walk(share, env_ids)
        return self.forward_to(
            0,
            env_ids,
            forward_speed=np.where(forward, share * self.cfg.forward_speed, 0.0),
            rotation_speed=np.where(forward, _STEERING * heading_error, turns * share * self.cfg.rotation_speed),
        )

    def _walk(self, share: NDArray[np.float64], env_ids: Any) -> ArticulationAction:
        """Go straight to where the action leads to, and turn as it says."""
        way, turn = (values[env_ids] for values in self._rest())
        action = self.action[env_ids]
        distance = np.linalg.norm(way, axis=-1)
        fastest = np.where(action == FORWARD, np.maximum(share * self.cfg.forward_speed, _LEAST), _RETURN)
        near = (distance < _NEAR) | ((action == STOP) & (distance < _STAYS))
        speed = np.where(near, 0.0, np.clip(_STEERING * distance, _LEAST, fastest))
        ahead = yaw_rotate(-self._pose()[env_ids][..., 2], way) * (speed / np.maximum(distance, 1e-6))[..., None]
        rate = np.clip(_STEERING * np.abs(turn), _LEAST, self.cfg.rotation_speed)
        close = np.abs(turn) < np.where(action == STOP, _WALKED[1], 0.5 * _WALKED[1])
        return self.forward_to(
            0,
            env_ids,
            forward_speed=ahead[..., 0],
            rotation_speed=np.where(close, 0.0, np.sign(turn) * rate),
            lateral_speed=ahead[..., 1],
        )

    def _rest(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the way `(..., 2)` [m] and the turn to the left [rad] to where each action leads to."""
        pose, heading = self._pose(), self.start[..., 2]
        length = np.where(self.action == FORWARD, self.forward_distance, 0.0)
        ahead = np.stack([np.cos(heading), np.sin(heading)], axis=-1) * length[..., None]
        due = heading + TURNS[np.maximum(self.action, 0)] * self.turn_angle
        return self.start[..., :2] + ahead - pose[..., :2], wrap_angle(due - pose[..., 2])

    @override
    def finished(self) -> NDArray[np.bool_]:
        """Return True if the robot has arrived, or the time of the action is over."""
        if walks_sideways(self):
            way, turn = self._rest()
            arrived = (np.linalg.norm(way, axis=-1) <= _WALKED[0]) & (np.abs(turn) <= _WALKED[1])
        else:
            tolerance = np.where(self.action == FORWARD, self.cfg.distance_tolerance, self.cfg.angle_tolerance)
            arrived = self._left()[0] <= tolerance
        return (self.action >= 0) & ((self.action == STOP) | arrived | self._late() | self._pushed_aside())

    @override
    def collided(self) -> NDArray[np.bool_]:
        """Return True if a step forward was given up before it came half of its way, or was pushed aside."""
        left, _ = self._left()
        given_up = self._late() & (left > (1.0 - _ENOUGH) * self.forward_distance)
        return (self.action == FORWARD) & given_up | self._pushed_aside()

    def _pushed_aside(self) -> NDArray[np.bool_]:
        """Return True where a robot that must not slide along things is off the line of its step forward."""
        if self.cfg.allow_sliding:
            return np.zeros(self.batch_shape, bool)
        way = self._pose()[..., :2] - self.start[..., :2]
        aside = yaw_rotate(-self.start[..., 2], way)[..., 1]
        return (self.action == FORWARD) & (np.abs(aside) > _ASIDE)

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

    def _late(self) -> NDArray[np.bool_]:
        return self._times() >= self.end_time

    def _times(self) -> NDArray[np.float64]:
        return self.scene.world.times[self.scene.env_id]


_SLIDES = np.radians(np.arange(5, 80, 5))  # turns off its heading in which a robot may slide along something
_SPACING = 0.05  # m, of the rays that find obstacles, on the cylinder: thinner things may be missed
_ABOVE = 0.01  # m, of the lowest rays over what is stepped on
_DOWN = np.array([0.0, 0.0, -1.0])


@BaseController.register('FlashController')
class FlashController(DiscreteController):
    """Steps and turns by teleportation, without physics, if nothing is in the way.

    Every action is over after one step of the env, and sets pose, joints and velocities: those that the robot started
    with, at the new place. So send one in every step, or the robot falls as physics has it. What is in the way is found
    with rays, 5 cm apart, through all that an upright cylinder around the robot passes on its way; things no higher
    than the height of a step are not in the way. The robot then stands on the ground at the new place. If there is none
    within the height of a step up or down, or something is in the way, it stays: `collided`. With
    `config.allow_sliding` it goes instead by the part of the step that is along what is in the way: in the free
    direction that is nearest to its heading, in steps of 5 degrees.
    """

    batched = True

    def __init__(self, config: FlashControllerCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self._view = robot.articulation.view
        agent = Agent.of(robot.config, config.step_height)
        radius, height = config.radius or agent.radius, config.height or agent.height
        self._step_height = agent.step_height
        # a row for each env, in every kind of scene
        self._place = self._rows_of(4)  # root x, y, z [m] and yaw [rad]; NaN before the first action
        self._stance = self._rows_of(5)  # root orientation at yaw 0, height of the root above the ground [m]
        self._joints = self._rows_of(len(self._view.dof_names))  # at the start [rad or m]
        self._blocked = self.state((), False, np.bool_)
        across = radius * np.sin(np.linspace(-np.pi / 2, np.pi / 2, 1 + math.ceil(np.pi * radius / _SPACING)))
        up = np.arange(agent.step_height + _ABOVE, height, _SPACING)
        self._ray_offsets = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)  # to the left, up [m]
        self._reach = np.sqrt(np.maximum(radius**2 - self._ray_offsets[:, 0] ** 2, 0.0))  # (rays,) [m], of the cylinder
        self._allow_sliding = config.allow_sliding

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Move the robot; its joint targets stay."""
        action = self.numbers_of(self.parsed(action, env_ids))
        self.action[env_ids] = action
        self.actions[env_ids] += 1
        self._blocked[env_ids] = False
        rows, envs = self._which(env_ids)
        new = np.isnan(self._place[rows, 0])
        if new.any():
            self._note_start(rows[new], envs[new])
        actions = np.atleast_1d(action)
        self._place[rows, 3] += self.turn_angle * TURNS[actions]
        going = actions == FORWARD
        if going.any():
            self._go(rows[going], envs[going])
        place, still = self._place[rows], np.zeros((len(rows), 3))
        self._view.set_root_poses(envs, place[:, :3], quat_multiply(quat_from_yaw(place[:, 3]), self._stance[rows, :4]))
        self._view.set_root_velocities(envs, still, still)
        if self._view.dof_names:
            self._view.set_joint_positions(envs, self._joints[rows])
            self._view.set_joint_velocities(envs, np.zeros_like(self._joints[rows]))
        return ArticulationAction()

    @override
    def finished(self) -> NDArray[np.bool_]:
        """Return True after the first action."""
        return self.action >= 0

    @override
    def collided(self) -> NDArray[np.bool_]:
        """Return True if the last action was a step forward that was obstructed."""
        return self._blocked

    def _note_start(self, rows: NDArray[np.intp], envs: NDArray[np.intp]) -> None:
        """Save the poses in these envs before their first action."""
        position, orientation = (values[envs].astype(np.float64) for values in self._view.get_root_poses())
        yaw = yaw_of(orientation)
        self._place[rows] = np.concatenate([position, yaw[:, None]], axis=1)
        self._stance[rows, :4] = quat_multiply(quat_from_yaw(-yaw), unit_quat(orientation))
        self._stance[rows, 4] = self._ground_below(envs, position)
        self._joints[rows] = self._view.get_joint_positions()[envs]

    def _go(self, rows: NDArray[np.intp], envs: NDArray[np.intp]) -> None:
        """Move these envs a step further, where they can."""
        moved = self._move(rows, envs, 0.0)
        self._blocked.reshape(-1)[rows] = ~moved
        for turn in _SLIDES if self._allow_sliding else ():
            for side in (turn, -turn):
                rows, envs = rows[~moved], envs[~moved]
                if not len(rows):
                    return
                moved = self._move(rows, envs, side)

    def _move(self, rows: NDArray[np.intp], envs: NDArray[np.intp], turn: float) -> NDArray[np.bool_]:
        """Move envs by the part of a step in a direction, `turn` [rad] left of their heading; returns which could."""
        place, height, length = self._place[rows], self._stance[rows, 4], self.forward_distance * np.cos(turn)
        cos, sin, zero = np.cos(place[:, 3] + turn), np.sin(place[:, 3] + turn), np.zeros(len(rows))
        ahead, left = np.stack([cos, sin, zero], axis=-1), np.stack([-sin, cos, zero], axis=-1)
        across, up = self._ray_offsets.T
        origins = place[:, None, :3] + across[:, None] * left[:, None]
        origins[..., 2] += up - height[:, None]
        distances = self._cast(envs, origins, np.broadcast_to(ahead[:, None], origins.shape))
        free = (distances > self._reach + length).all(axis=1)
        there = place[:, :3] + length * ahead
        climb = height - self._ground_below(envs, there)
        moved = free & (np.abs(climb) <= self._step_height)
        there[:, 2] += climb
        self._place[rows, :3] = np.where(moved[:, None], there, place[:, :3])
        return moved

    def _ground_below(self, envs: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the depth of the ground below points `(n, 3)` [m]."""
        return self._cast(envs, points[:, None], np.broadcast_to(_DOWN, (len(envs), 1, 3)))[:, 0]

    def _cast(
        self, envs: NDArray[np.intp], origins: NDArray[np.float64], directions: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return distances [m] to colliders, the robot excluded."""
        return self._view.cast_rays(
            envs, origins, directions, groups=(BOTH_GROUP, COLLIDER_GROUP), link=self._view.body_names[0]
        )

    def _rows_of(self, count: int) -> NDArray[np.float64]:
        """Return state with a row for each env, NaN after a reset; a single row for one env."""
        return self.state((count,), np.nan, np.float64).reshape(math.prod(self.batch_shape), count)

    def _which(self, env_ids: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return rows of the state, and env ids, of the envs that an action is for."""
        if env_ids is not ...:
            return env_ids, env_ids
        env_id = self.scene.env_id
        if isinstance(env_id, int):
            return np.array([0]), np.array([env_id])
        return np.arange(len(self._place)), np.arange(len(self._place))


@BaseController.register('ChunkController')
class ChunkController(BoxActionController):
    """Counter of the steps of a chunk of actions that are still to come, `[count]`; it moves nothing.

    It is commanded by a policy that acts without looking: a camera with `after_actions` captures no images until the
    count is 0. Without a command, it is.
    """

    batched = True
    action_shape = (1,)
    action_meaning = 'number of steps to come'
    action_limits = 1.0

    def __init__(self, config: ChunkControllerCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self._left = self.state()

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Set the counts of some envs."""
        self._left[env_ids] = self.parsed(action, env_ids)[..., 0]
        return ArticulationAction()

    def finished(self) -> NDArray[np.bool_]:
        """Return True where a chunk has ended `batch_shape`."""
        return self._left <= 0.0
