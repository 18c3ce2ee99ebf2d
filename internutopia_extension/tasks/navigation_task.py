"""Navigation task, and the distance to its goals on the map of its scene."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.task import TaskCfg
from internutopia.core.scene.scene import IScene
from internutopia.core.task import BaseTask
from internutopia.navigation.agent import Agent
from internutopia.util.rotations import quat_rotate, quat_rotate_inverse, wrap_angle, yaw_of
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.controllers.speed_controllers import has_moved

if TYPE_CHECKING:
    from internutopia.navigation import NavigationMap


Distance = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Distances `(n,)` [m] of points on the ground `(n, 3)` [m] to the nearest goal; infinite where there is no way."""

_KEPT = 16  # maps
_OF_THE_SCENE = {'scene_asset_path', 'scene_scale', 'scene_position', 'scene_orientation', 'decompose_scene', 'objects'}
_OF_THE_ENV = {'name', 'prim_path'}
_NOT_OF_THE_BODY = {*_OF_THE_ENV, 'position', 'orientation', 'controllers', 'sensors'}

_maps: OrderedDict[tuple[str, str], NavigationMap] = OrderedDict()


def goal_distance(config: NavigationTaskCfg) -> Distance:
    """Return the function of a task's distances, of the kind in its `distance`.

    ValueError or OSError if the scene has no map, or no goal has free space near it; see `NavigationMap`.
    """
    goals = config.episode.goal_points
    if config.distance == 'euclidean':
        return lambda points: np.linalg.norm(points[:, None] - goals, axis=-1).min(axis=1)
    navigation_map = map_of(config)
    field = navigation_map.distance_field(goals)
    middle = np.array([0.0, 0.0, navigation_map.agent.height / 2])  # on a floor for certain, also while a robot sways
    return lambda points: field.distances(points + middle)


def map_of(config: TaskCfg) -> NavigationMap:
    """Return the map of a task's scene for its first robot; made once for all episodes that have both.

    ValueError or OSError if there is none; see `NavigationMap.of_scene`. ImportError: an extra is missing.
    """
    from internutopia.navigation import NavigationMap

    robot = config.robots[0]
    names = {'objects': {'__all__': _OF_THE_ENV}}
    scene = config.model_dump_json(include=_OF_THE_SCENE, exclude=names)
    key = scene, robot.model_dump_json(exclude=_NOT_OF_THE_BODY)
    if key not in _maps:
        _maps[key] = NavigationMap.of_scene(config, Agent.of(robot))
        if len(_maps) > _KEPT:
            _maps.popitem(last=False)
    return _maps[key]


_UP = np.array([0.0, 0.0, 1.0])


@BaseTask.register('NavigationTask')
class NavigationTask(BaseTask):
    """A task that ends at a stop, goal, fall, when stuck, or out of actions; see `NavigationTaskCfg`.

    Adds `navigation` to the observation of the first robot:

    - `instruction`, `category`: the instruction and the kind of thing to find, None where the episode has none.
    - `goal` `(2,)`: straight distance [m] to the nearest goal and how far it is to the left [rad], in the plane.
    - `position` `(3,)`: the point of the ground that the robot stands over [m], env frame, as at the start.
    - `distance`: to the nearest goal [m], of the kind `config.distance`; infinite if there is no way.
    - `start_distance`: the same at the start of the episode [m].
    - `time`: since the start [s].
    - `collided`: True if a controller or sensor of the robot reports `collided`.
    - `actions`: number of discrete actions so far.
    - `end`: `'stop'`, `'goal'`, `'fall'`, `'stuck'` or `'actions'` where the task is done, else None.
    """

    config: NavigationTaskCfg

    def __init__(self, config: NavigationTaskCfg, scene: IScene):
        super().__init__(config, scene)
        self._points = config.episode.goal_points
        self._distance = goal_distance(config)
        self._start_distance = float(self._distance(np.array([config.episode.start_position]))[0])
        self._end: str | None = None
        self._base_height = 0.0
        self._start_up = _UP
        self._anchor = np.zeros(4)  # x, y [m], yaw [rad], time [s] when it moved last

    @override
    def post_reset(self) -> None:
        """Save the robot's upright direction at the start."""
        super().post_reset()
        position, orientation = next(iter(self.robots.values())).get_pose()
        self._base_height = float(position[2]) - self.config.episode.start_position[2]
        self._start_up = quat_rotate_inverse(orientation.astype(np.float64), _UP)
        self._anchor[:] = *position[:2], yaw_of(orientation), 0.0

    @override
    def get_observations(self) -> dict[str, Any]:
        """Return the observations of the robots, and the state of navigation."""
        obs = super().get_observations()
        name, robot = next(iter(self.robots.items()))
        position, orientation = (values.astype(np.float64) for values in robot.get_pose())
        position[2] -= self._base_height
        yaw, time = float(yaw_of(orientation)), float(self._scene.world.times[self.env_id])
        ways = self._points[:, :2] - position[:2]
        away = np.hypot(*ways.T)
        ahead = ways[np.argmin(away)]
        bearing = float(wrap_angle(np.arctan2(ahead[1:], ahead[:1]) - yaw)[0])
        distance = float(self._distance(position[None])[0])
        parts = [*obs[name].get('controllers', {}).values(), *obs[name].get('sensors', {}).values()]
        actions = sum(int(part.get('actions', 0)) for part in parts)
        fall_angle = self.config.fall_angle
        fallen = fall_angle is not None and quat_rotate(orientation, self._start_up)[2] < math.cos(fall_angle)
        self._end = self._find_end(distance, parts, actions, fallen, self._stuck(position, yaw, time))
        goals = self.config.episode.goals
        obs[name]['navigation'] = {
            'instruction': self.config.episode.instruction,
            'category': goals[0].category,
            'goal': np.array([away.min(), bearing], np.float32),
            'position': position,
            'distance': distance,
            'start_distance': self._start_distance,
            'time': time,
            'collided': any(bool(part.get('collided', False)) for part in parts),
            'actions': actions,
            'end': self._end,
        }
        return obs

    @override
    def is_done(self) -> bool:
        return self._end is not None

    def _find_end(
        self, distance: float, parts: list[dict[str, Any]], actions: int, fallen: bool, stuck: bool
    ) -> str | None:
        """Return the reason why the episode is over, if it is; the first that holds."""
        finished = all(bool(part.get('finished', True)) for part in parts if 'actions' in part)
        most = self.config.max_actions
        ends = {
            'stop': self.config.stop_action and any(bool(part.get('stopped', False)) for part in parts),
            'goal': not self.config.stop_action and distance <= self.config.radius,
            'fall': fallen,
            'stuck': stuck,
            'actions': most is not None and actions >= most and finished,
        }
        return next((end for end, holds in ends.items() if holds), None)

    def _stuck(self, position: NDArray[np.float64], yaw: float, time: float) -> bool:
        """Return True if the robot has neither moved nor turned for too long."""
        if self.config.stuck_seconds is None:
            return False
        pose = np.array([*position[:2], yaw])
        if has_moved(pose, self._anchor[:3], self.config.stuck_distance, self.config.stuck_angle):
            self._anchor[:] = *pose, time
            return False
        return time - self._anchor[3] >= self.config.stuck_seconds
