"""Path controller: goes through points, in sequence, or towards a point ahead on the path."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.util.arrays import check_alike, namespace_of, to_host
from internutopia_extension.controllers.batch_values import observed, stack_actions
from internutopia_extension.controllers.ground_controllers import (
    FORWARD_SPEED,
    ROTATION_SPEED,
    SAME,
    THRESHOLD,
    braked,
    planar_distance,
    setting,
    stays,
    walks_sideways,
)
from internutopia_extension.controllers.paths import at, go_through, pursue

_SHORTEST = 1e-9  # m, between a point and another one


@BaseController.register('MoveAlongPathPointsController')
class MoveAlongPathPointsController(BaseController):
    """Motion along a path of points (x, y, z) [m], with a move-to-point sub-controller.

    Action: `[points]`, a list of points `(3,)` [m] in the env frame whose z does not count. A list that differs from
    the last one starts at its first point; a call within `threshold` of a point continues to the next one. With
    `look_ahead` the robot does not stop at points: it heads for where the path is so far ahead of it, see `pursue`.
    One that walks sideways brakes at 0.3 m/s² before it has to stop: at the end of the path, and without `look_ahead`
    where the path turns by more than 20 degrees. It goes through other points without slowing down, see `go_through`.

    Observation: `current_index`, `current_point` `(3,)` with z = 0 (before the first action None, on a device NaN),
    `total_points`, and `finished`: whether the last point is current and reached; of a robot that walks sideways, once
    it was, while it is less than twice the `threshold` away.

    Attributes:
        path_points: the points `(longest path so far, 3)`, NaN behind the last one.
        path_point_idx: index of the current point.
        current_path_point: the current point `(3,)` with z = 0; NaN before the first action.
        reached: whether the last point of the path was reached.
        path_start: where the robot was when it got its path `(3,)`; NaN before.
        total_points: number of points.
    """

    batched = True
    sub_command = (
        'start_position',
        'start_orientation',
        'goal_position',
        'forward_speed',
        'rotation_speed',
        'threshold',
    )

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.forward_speed = setting(config, 'forward_speed', FORWARD_SPEED)
        self.rotation_speed = setting(config, 'rotation_speed', ROTATION_SPEED)
        self.threshold = setting(config, 'threshold', THRESHOLD)
        self.look_ahead: float | None = getattr(config, 'look_ahead', None)
        self._planar = self.arrays.asarray([1.0, 1.0, 0.0], 'float32')  # z does not count
        self.path_points = self.arrays.zeros((*self.batch_shape, 0, 3))
        self.path_point_idx = self.state(dtype=np.intp)
        self.total_points = self.state(dtype=np.intp)
        self.current_path_point = self.state((3,), np.nan)
        self.path_start = self.state((3,), np.nan)
        self.last_threshold = self.state((), np.nan)
        self.reached = self.state(dtype=np.bool_)

    @override
    def reset(self, env_ids: Any = ...) -> None:
        """Clear the paths of these envs."""
        super().reset(env_ids)
        self.path_points[env_ids] = np.nan

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Return one env's action as `(points, 3)`."""
        paths = _as_paths([action])
        if paths is None:
            point = f'3 finite numbers each, none beyond {LARGEST_NUMBER:g}'
            raise ValueError(f'expected [path], a list of one or more points of {point}, got {reprlib.repr(action)}')
        return paths[0]

    @override
    def parse_actions(self, actions: Sequence[Any]) -> NDArray[Any]:
        """Return the actions of several envs as `(n, points of the longest path, 3)`, NaN behind the last point."""
        paths = _as_paths(actions)
        return super().parse_actions(actions) if paths is None else paths

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute speeds along the path of the action, `(points, 3)`, or as in the action space `(1, points, 3)`."""
        action = self.parsed(action, env_ids)
        position, orientation = (part[env_ids] for part in self.robot.get_pose())
        return self.forward(
            start_position=position,
            start_orientation=orientation,
            path_points=action.reshape(*position.shape[:-1], -1, 3),
            forward_speed=self.forward_speed,
            rotation_speed=self.rotation_speed,
            threshold=self.threshold,
            look_ahead=self.look_ahead,
            env_ids=env_ids,
        )

    def forward(
        self,
        start_position: NDArray[np.float32],
        start_orientation: NDArray[np.float32],
        path_points: Any,
        forward_speed: float = FORWARD_SPEED,
        rotation_speed: float = ROTATION_SPEED,
        threshold: float = THRESHOLD,
        look_ahead: float | None = None,
        env_ids: Any = ...,
    ) -> ArticulationAction:
        """Compute speeds [m/s, rad/s] at a pose (env frame) on a path `(points, 3)`; reached within `threshold` [m]."""
        xp = self.arrays.xp
        points = self._stored_length(self.arrays.asarray(path_points, 'float32')) * self._planar
        old = self.path_points[env_ids]
        same = xp.all((points == old) | (xp.isnan(points) & xp.isnan(old)), axis=(-2, -1))
        self.path_points[env_ids] = points
        total = (~xp.isnan(points[..., 0])).sum(axis=-1)
        index = xp.where(same, self.path_point_idx[env_ids], 0)
        last, walks = total - 1, walks_sideways(self)
        start = xp.where(same[..., None], self.path_start[env_ids], start_position)
        self.path_start[env_ids] = start
        speed, stays_there, here = forward_speed, None, start_position
        if look_ahead is not None:
            index, goal, way = pursue(here, start, points, index, last, look_ahead)
            end = at(points, last)
            # where a path turns back, the point that a robot heads for may be where it is: not one to stay at
            stays_there = planar_distance(goal, end) < _SHORTEST
            index = xp.where(stays_there & (planar_distance(here, end) < threshold), last, index)
            speed = braked(speed, way) if walks else speed
        elif walks:
            index, aim, stop, way = go_through(here, start, points, index, last, threshold)
            goal, stays_there, speed = at(points, aim), aim == stop, braked(speed, way)
        else:
            near = planar_distance(here, at(points, index)) < threshold
            index = xp.where(near, xp.minimum(index + 1, last), index)
            goal = at(points, index)
        point = at(points, index)
        same_point = planar_distance(point, self.current_path_point[env_ids]) < SAME  # NaN where there was none
        there = stays(self.reached[env_ids] & same_point, planar_distance(here, point), threshold)
        self.reached[env_ids] = there & (index == last) & walks
        self.total_points[env_ids] = total
        self.path_point_idx[env_ids] = index
        self.current_path_point[env_ids] = point
        self.last_threshold[env_ids] = xp.full_like(point[..., 0], threshold)
        return self.forward_to(
            0,
            env_ids,
            start_position=start_position,
            start_orientation=start_orientation,
            goal_position=goal,
            forward_speed=speed,
            rotation_speed=rotation_speed,
            threshold=threshold if stays_there is None else threshold * xp.astype(stays_there, xp.float32),
        )

    @override
    def get_obs(self) -> dict[str, Any]:
        position, _ = self.robot.get_pose()
        reached = stays(self.reached, planar_distance(position, self.current_path_point), self.last_threshold)
        return {
            'current_index': observed(self._copy(self.path_point_idx)),
            'current_point': self._observed_point(),
            'total_points': observed(self._copy(self.total_points)),
            'finished': observed(reached & (self.path_point_idx == self.total_points - 1)),
        }

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of paths of one point, up to 100 m away from the origin along each axis."""
        return Box(-100.0, 100.0, (1, 1, 3))

    @override
    def observation_space(self) -> Space[Any]:
        """Return the space of `get_obs`, whose `current_point` is a point from the first action on."""
        count = Discrete(np.iinfo(np.int64).max)
        point = Box(-np.inf, np.inf, (3,))
        return Dict(current_index=count, current_point=point, total_points=count, finished=Discrete(2))

    def save_state(self, env_ids: Any = ...) -> list[NDArray[Any]]:
        """Return the state of these envs, see `internutopia.core.runner.state`; last the path."""
        memory = [to_host(array)[env_ids].copy() for array, _ in self._states]
        points = int(to_host(self.total_points)[env_ids].max())
        return [*memory, to_host(self.path_points)[env_ids][..., :points, :].copy()]

    def check_state(self, state: list[NDArray[Any]], env_ids: Any = ...) -> None:
        """Raise ValueError if these are no paths and points of them."""
        own = self.save_state(env_ids)
        check_alike([*state[:-1], state[-1][..., :0, :]], [*own[:-1], own[-1][..., :0, :]])
        index, total, path = state[0], state[1], state[-1]
        if (total != np.isfinite(path).all(axis=-1).sum(axis=-1)).any():
            raise ValueError(f'the path has another number of points than {total.tolist()}')
        if (index < 0).any() or (index > np.maximum(total - 1, 0)).any():
            raise ValueError(f'there is no point {index.tolist()} on a path of {total.tolist()} points')

    def load_state(self, state: list[NDArray[Any]], env_ids: Any = ...) -> None:
        """Restore a saved path."""
        for (array, _), rows in zip(self._states, state[:-1], strict=True):
            array[env_ids] = self.arrays.asarray(rows, rows.dtype.name)
        self.path_points[env_ids] = self._stored_length(self.arrays.asarray(state[-1], 'float32'))

    def _stored_length(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return paths filled up with NaN to the length of `path_points`, which grows where they are longer."""
        missing = points.shape[-2] - self.path_points.shape[-2]
        if missing > 0:
            self.path_points = _longer(self.path_points, missing)
        return _longer(points, -missing) if missing < 0 else points

    def _copy(self, array: Any) -> Any:
        return self.arrays.xp.asarray(array, copy=True)

    def _observed_point(self) -> Any:
        point = self._copy(self.current_path_point)
        if not self.batch_shape:
            return point if self.total_points else None
        if self.arrays.on_device:
            return point
        rows = np.fromiter(point, object, len(point))  # as rows of their own, some may be None
        rows[self.total_points == 0] = None
        return rows


def _as_paths(actions: Sequence[Any]) -> NDArray[np.float32] | None:
    """Return actions as `(n, points, 3)`; None if the paths differ in length or one of them is none."""
    stacked = stack_actions(actions)
    if stacked is None or stacked.ndim != 4 or stacked.shape[1] != 1 or stacked.shape[2] == 0 or stacked.shape[3] != 3:
        return None
    return stacked[:, 0]


def _longer(points: NDArray[np.float32], by: int) -> NDArray[np.float32]:
    """Return paths `(..., points, 3)` with NaN appended."""
    xp = namespace_of(points)
    unset = xp.full((*points.shape[:-2], by, 3), np.nan, dtype=xp.float32, device=points.device)
    return xp.concat([points, unset], axis=-2)
