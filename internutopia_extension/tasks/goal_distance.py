"""Distance to the goals of navigation, as a function of points, and the map that it is measured on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from internutopia.config.task import TaskCfg
from internutopia.navigation.agent import Agent
from internutopia_extension.configs.tasks import NavigationTaskCfg

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
