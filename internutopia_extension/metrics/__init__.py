"""Built-in metrics; importing this package registers them."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.config.task import TaskCfg
from internutopia.core.task import BaseMetric
from internutopia.navigation import metrics
from internutopia.util import did_you_mean
from internutopia_extension.configs.metrics import (
    NavigationMetricCfg,
    RecordingMetricCfg,
    TaskSuccessMetricCfg,
    TraveledDistanceMetricCfg,
)
from internutopia_extension.configs.tasks import NavigationTaskCfg, TabletopTaskCfg

_BOUNCE = 0.5  # s without contact, after which it is still the same collision
_MILLIMETRES = 3  # digits of what is written of a path [m]


def pick(obs: Mapping[str, Any], name: str, what: str) -> Any:
    """Return the entry of that name. KeyError that names `what`, with close matches."""
    if name not in obs:
        raise KeyError(f'{what} {name!r} is not in the observations; {did_you_mean(name, obs)}')
    return obs[name]


@BaseMetric.register('NavigationMetric')
class NavigationMetric(BaseMetric):
    """Standard metrics of a `NavigationTask`: success, SPL, ...; see `internutopia.navigation.metrics`.

    `calc` gives `scene`, `episode` and `instruction`, `end` (that of the task, `'steps'` where it was cut off),
    `success`, `spl`, `soft_spl`, `oracle_success`, `navigation_error` and `shortest` (distances to the goal at the end
    and at the start [m]; those are infinite where there is no way), `path_length` [m], `ndtw`, `sdtw` and `cls` (of
    episodes with a reference path), `collisions` and `collision_time` [s], `time` [s], `steps`, `actions`, and `path`,
    its points [m].

    The path begins at the start of the episode and has a point each `config.path_step`. Where the episode itself has
    the length of the shortest path, that counts as `shortest`.
    """

    def __init__(self, config: NavigationMetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        if not isinstance(task_config, NavigationTaskCfg):
            raise ValueError(
                f'metric {self.name!r}: expected a NavigationTask, got a task of type {task_config.type!r}'
            )
        self._task = task_config
        self._step, self._scale = config.path_step, config.path_scale
        self._path = [list(task_config.episode.start_position)]
        self._distances: list[float] = []  # of the path's points, the start among them
        self._collided: list[bool] = []  # in each step
        self._times = [0.0]
        self._end: str | None = None
        self._actions = 0

    @override
    def update(self, obs: dict[str, Any]) -> None:
        """Add one step. KeyError if the observation is not that of a `NavigationTask`."""
        state = pick(next(iter(obs.values())), 'navigation', f'metric {self.name!r}: field')
        if not self._distances:
            self._distances.append(state['start_distance'])
        self._path.append(state['position'].tolist())
        self._distances.append(state['distance'])
        self._collided.append(state['collided'])
        self._times.append(state['time'])
        self._end = state['end']
        self._actions = state['actions']

    @override
    def calc(self) -> dict[str, Any] | None:
        """Return all figures; None if the episode ended before its first step was observed."""
        if not self._distances:
            return None
        episode, radius = self._task.episode, self._task.radius
        path = metrics.thinned(self._path, self._step)
        length = metrics.path_length(path)
        error = self._distances[-1]
        shortest = self._distances[0] if episode.geodesic_distance is None else episode.geodesic_distance
        success = metrics.success(error, radius, self._end in ('stop', 'goal'))
        followed: dict[str, float | None] = {'ndtw': None, 'sdtw': None, 'cls': None}
        if episode.reference_path:
            ndtw = metrics.ndtw(path, episode.reference_path, self._scale)
            score = metrics.cls_score(path, episode.reference_path, self._scale)
            followed = {'ndtw': ndtw, 'sdtw': success * ndtw, 'cls': score}
        durations = np.diff(self._times)
        is_flash = self._actions >= len(self._collided)  # an action in each step, however short that is
        gap = 0 if is_flash else round(_BOUNCE / durations.mean())
        return {
            'scene': episode.scene,
            'episode': episode.episode_id,
            'instruction': episode.instruction,
            'end': self._end or 'steps',
            'success': success,
            'spl': metrics.spl(success, shortest, length),
            'soft_spl': metrics.soft_spl(error, self._distances[0], shortest, length),
            'oracle_success': metrics.oracle_success(self._distances, radius),
            'navigation_error': error,
            'path_length': length,
            'shortest': shortest,
            **followed,
            'collisions': metrics.collision_count(self._collided, gap),
            'collision_time': float(durations[np.array(self._collided)].sum()),
            'time': self._times[-1],
            'steps': len(self._collided),
            'actions': self._actions,
            'path': path.round(_MILLIMETRES).tolist(),
        }


@BaseMetric.register('TaskSuccessMetric')
class TaskSuccessMetric(BaseMetric):
    """Success of a `TabletopTask`.

    `calc` gives `suite_task`, `perturbation`, `number` and `instruction` of the episode, `success` (0.0 or 1.0) and
    `steps`.
    """

    def __init__(self, config: TaskSuccessMetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        if not isinstance(task_config, TabletopTaskCfg):
            raise ValueError(f'metric {self.name!r}: expected a TabletopTask, got a task of type {task_config.type!r}')
        self._task = task_config
        self._success, self._steps = False, 0

    @override
    def update(self, obs: dict[str, Any]) -> None:
        """Add one step. KeyError if the observation is not that of a `TabletopTask`."""
        self._success = pick(next(iter(obs.values())), 'task', f'metric {self.name!r}: field')['success']
        self._steps += 1

    @override
    def calc(self) -> dict[str, Any]:
        task = self._task
        return {
            'suite_task': task.suite_task,
            'perturbation': task.perturbation,
            'number': task.number,
            'instruction': task.instruction,
            'success': float(self._success),
            'steps': self._steps,
        }


@BaseMetric.register('RecordingMetric')
class RecordingMetric(BaseMetric):
    """Observations of a robot, or some of their fields, at each step.

    Attributes:
        obs: what was recorded: `{step: {robot name: {field: value}}}`, steps from 0.
        step: number of steps so far.
        fields: the fields to record, None for all.
    """

    def __init__(self, config: RecordingMetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.robot_name = config.robot_name
        self.fields = config.fields
        self.step = 0
        self.obs: dict[int, dict[str, dict[str, Any]]] = {}

    @override
    def update(self, obs: dict[str, Any]) -> None:
        """Record one step. KeyError if there is no such robot or field."""
        robot_obs = pick(obs, self.robot_name, f'metric {self.name!r}: robot')
        names = robot_obs if self.fields is None else self.fields
        # the caller of step gets the same arrays and may change them
        record = {name: copy.deepcopy(pick(robot_obs, name, f'metric {self.name!r}: field')) for name in names}
        self.obs[self.step] = {self.robot_name: record}
        self.step += 1

    @override
    def calc(self) -> dict[int, dict[str, dict[str, Any]]]:
        return self.obs


@BaseMetric.register('TraveledDistanceMetric')
class TraveledDistanceMetric(BaseMetric):
    """Length of a robot's path [m], in three dimensions.

    Attributes:
        distance: length so far [m].
        position: the last position, x, y and z [m], None before the first step.
    """

    def __init__(self, config: TraveledDistanceMetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.robot_name = config.robot_name
        self.distance = 0.0
        self.position: list[float] | None = None

    @override
    def update(self, obs: dict[str, Any]) -> None:
        """Add the distance of one step. KeyError if there is no such robot."""
        robot_obs = pick(obs, self.robot_name, f'metric {self.name!r}: robot')
        self._move_to(np.array(robot_obs['position'], np.float64).tolist())

    @classmethod
    @override
    def update_all(cls, metrics: Sequence[TraveledDistanceMetric], obs: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the distances of one step. KeyError if there is no such robot."""
        names = dict.fromkeys(metric.robot_name for metric in metrics)
        robots = {name: pick(obs, name, f'metric {metrics[0].name!r}: robot') for name in names}
        positions = {name: np.asarray(rows['position'], np.float64).tolist() for name, rows in robots.items()}
        for row, metric in enumerate(metrics):
            metric._move_to(positions[metric.robot_name][row])

    def _move_to(self, position: list[float]) -> None:
        if self.position is not None:
            self.distance += math.dist(position, self.position)
        self.position = position

    @override
    def calc(self) -> float:
        """Return the path length [m]."""
        return self.distance
