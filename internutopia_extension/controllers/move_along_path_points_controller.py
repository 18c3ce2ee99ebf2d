"""Path controller: goes through points, in sequence, or towards a point ahead on the path.

A robot that heads for a point a constant distance ahead rounds corners and comes back to the path where it has left it
(pure pursuit, Coulter 1992, CMU-RI-TR-92-01).
"""

from __future__ import annotations

import math
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
    THRESHOLD,
    braked,
    planar_distance,
    setting,
    stays,
    walks_sideways,
)

_AS_NEAR = 1e-4  # m: of parts of the path that differ by less in their distance, the later one counts
_SHORTEST = 1e-9  # m, to divide by
_SHARPEST = math.cos(math.radians(20.0))  # of the angle at a point that a robot walks through


def pursue(position: Any, start: Any, points: Any, index: Any, last: Any, look_ahead: float) -> tuple[Any, Any]:
    """Return the positions of robots on their paths, and the points that they head for.

    The path leads from `start` through `points`. A robot is on the nearest part of it between where it was and
    `look_ahead` beyond; where two are as near, as before a turn back, on the later one.

    Args:
        position: of the robots `(..., 3)` [m].
        start: of the paths `(..., 3)` [m].
        points: of the paths `(..., k, 3)` [m]; what follows the last one is NaN.
        index: of the point that each was going to, `(...)`.
        last: index of the last point of each path, `(...)`.
        look_ahead: distance along the path [m].

    Returns:
        Index `(...)` of the point at the end of the part that each is on, and the point `(..., 3)` of the path, with
        z = 0, that is `look_ahead` ahead, or its last one.
    """
    xp = namespace_of(points)
    corners, ways, lengths, ends = _parts(start, points)
    directions = ways / lengths.clip(min=_SHORTEST)[..., None]
    begins = ends - lengths
    offsets = position[..., None, :2] - corners[..., :-1, :]
    along = xp.minimum((offsets * directions).sum(axis=-1).clip(min=0.0), lengths)
    reach = (_at(begins + along, index) + look_ahead)[..., None]
    aside = offsets - xp.minimum(along, (reach - begins).clip(min=0.0))[..., None] * directions
    distances = xp.sqrt((aside * aside).sum(axis=-1))

    parts = xp.zeros_like(index)[..., None] + xp.arange(points.shape[-2], device=points.device)
    within = (parts >= index[..., None]) & (parts <= last[..., None]) & (begins <= reach)
    distances = xp.where(within, distances, xp.inf)
    nearest = distances <= xp.min(distances, axis=-1)[..., None] + _AS_NEAR
    index = xp.max(xp.where(nearest & within, parts, -1), axis=-1)

    ahead = xp.minimum(_at(begins + along, index) + look_ahead, _at(ends, last))
    part = xp.minimum((ends < ahead[..., None]).sum(axis=-1), last)
    back = _at(ends, part) - ahead
    corner, direction = (_at(values, part) for values in (points[..., :2], directions))
    goal = corner - back[..., None] * direction
    return index, xp.concat([goal, xp.zeros_like(goal[..., :1])], axis=-1)


def way_to_stop(start: Any, points: Any, index: Any, last: Any, at_corners: bool) -> tuple[Any, Any]:
    """Return the next points on paths where a robot has to stop, and how far they are from the points at `index`.

    Args:
        start: of the paths `(..., 3)` [m].
        points: of the paths `(..., k, 3)` [m]; what follows the last one is NaN.
        index: of the point that each robot goes to, `(...)`.
        last: index of the last point of each path, `(...)`.
        at_corners: whether it stops where its path turns by more than 20 degrees, not only at the end.

    Returns:
        Index `(...)` of the point, and the way to it along the path `(...)` [m].
    """
    xp = namespace_of(points)
    _, ways, lengths, ends = _parts(start, points)
    stops = xp.arange(points.shape[-2], device=points.device) == last[..., None]
    if at_corners:
        turned = (ways[..., 1:, :] * ways[..., :-1, :]).sum(axis=-1)
        sharp = turned <= _SHARPEST * lengths[..., 1:] * lengths[..., :-1]  # those of no length, too
        stops = stops | xp.concat([sharp, stops[..., -1:]], axis=-1)
    stop = _first(stops, index)
    return stop, _at(ends, stop) - _at(ends, index)


def _parts(start: Any, points: Any) -> tuple[Any, Any, Any, Any]:
    """Return the straight parts of paths, seen from above.

    Corners, with the start `(..., k + 1, 2)`; vectors `(..., k, 2)`, zero behind the last point; lengths `(..., k)`;
    and the way from the start to their ends `(..., k)`.
    """
    xp = namespace_of(points)
    corners = xp.concat([start[..., None, :2], points[..., :2]], axis=-2)
    ways = xp.diff(corners, axis=-2)
    ways = xp.where(xp.isnan(ways), 0.0, ways)
    lengths = xp.sqrt((ways * ways).sum(axis=-1))
    return corners, ways, lengths, xp.cumulative_sum(lengths, axis=-1)


def _first(mask: Any, index: Any) -> Any:
    """Return where a mask `(..., k)` is True for the first time from an index `(...)` on, or else the last place."""
    xp = namespace_of(mask)
    places = xp.zeros_like(index)[..., None] + xp.arange(mask.shape[-1], device=mask.device)
    return xp.min(xp.where(mask & (places >= index[..., None]), places, mask.shape[-1] - 1), axis=-1)


def _at(values: Any, index: Any) -> Any:
    """Return the elements at an index `(...)` in `(..., k)` or `(..., k, 2)`."""
    xp = namespace_of(values)
    if values.ndim == index.ndim + 1:
        return xp.take_along_axis(values, index[..., None], axis=-1)[..., 0]
    return xp.take_along_axis(values, index[..., None, None], axis=-2)[..., 0, :]


@BaseController.register('MoveAlongPathPointsController')
class MoveAlongPathPointsController(BaseController):
    """Motion along a path of points (x, y, z) [m], with a move-to-point sub-controller.

    Action: `[points]`, a list of points `(3,)` [m] in the env frame whose z does not count. A list that differs from
    the last one starts at its first point; a call within `threshold` of a point continues to the next one. With
    `look_ahead` the robot does not stop at points: it heads for where the path is so far ahead of it, see `pursue`.
    One that walks sideways brakes at 0.3 m/s² before it has to stop: at the end of the path, and without `look_ahead`
    where the path turns by more than 20 degrees. It goes through other points without slowing down, several in a call
    if they are that near.

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
            raise ValueError(f'expected [path], a list of one or more points of {point}, got {action!r}')
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
        if look_ahead is None:
            near = planar_distance(start_position[..., None, :], points) < threshold
            # one that walks does not slow down before points that it goes through, and may be beyond some of them
            index = xp.minimum(_first(~near, index) if walks else index + _at(near, index), last)
            goal, heads_for_end = _at(points, index), None
        else:
            index, goal = pursue(start_position, start, points, index, last, look_ahead)
            end = _at(points, last)
            # where a path turns back, the point that a robot heads for may be where it is: not one to stay at
            heads_for_end = planar_distance(goal, end) < _SHORTEST
            index = xp.where(heads_for_end & (planar_distance(start_position, end) < threshold), last, index)
        point, speed, stays_there = _at(points, index), forward_speed, heads_for_end
        if walks:
            stop, way = way_to_stop(start, points, index, last, at_corners=look_ahead is None)
            speed = braked(forward_speed, planar_distance(start_position, point) + way)
            stays_there = index == stop if heads_for_end is None else heads_for_end
        there = stays(self.reached[env_ids] & same, planar_distance(start_position, point), threshold)
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
