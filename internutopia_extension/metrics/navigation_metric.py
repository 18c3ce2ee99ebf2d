"""Metrics of navigation, all in one."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.config.task import TaskCfg
from internutopia.core.task import BaseMetric
from internutopia.navigation import metrics
from internutopia_extension.configs.metrics import NavigationMetricCfg
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.metrics.pick import pick

_BOUNCE = 0.5  # s without contact, after which it is still the same collision
_MILLIMETRES = 3  # digits of what is written of a path [m]


@BaseMetric.register('NavigationMetric')
class NavigationMetric(BaseMetric):
    """Standard metrics of navigation, see `internutopia.navigation.metrics`; for a `NavigationTask`.

    `calc` gives `scene` and `episode`, `end` (that of the task, `'steps'` where it was cut off), `success`, `spl`,
    `soft_spl`, `oracle_success`, `navigation_error` and `shortest` (distances to the goal at the end and at the start
    [m]; those are infinite where there is no way), `path_length` [m], `ndtw`, `sdtw` and `cls` (of episodes with a
    reference path), `collisions` and `collision_time` [s], `time` [s], `steps`, `actions`, and `path`, its points [m].

    The path begins at the start of the episode and has a point each `config.path_step`. Where the episode itself says
    how long the shortest path is, that counts as `shortest`.
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
        return {
            'scene': episode.scene,
            'episode': episode.episode_id,
            'end': self._end or 'steps',
            'success': success,
            'spl': metrics.spl(success, shortest, length),
            'soft_spl': metrics.soft_spl(error, self._distances[0], shortest, length),
            'oracle_success': metrics.oracle_success(self._distances, radius),
            'navigation_error': error,
            'path_length': length,
            'shortest': shortest,
            **followed,
            'collisions': metrics.collision_count(self._collided, round(_BOUNCE / durations.mean())),
            'collision_time': float(durations[np.array(self._collided)].sum()),
            'time': self._times[-1],
            'steps': len(self._collided),
            'actions': self._actions,
            'path': path.round(_MILLIMETRES).tolist(),
        }
