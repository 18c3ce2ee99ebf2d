"""Metric of the path length of a robot."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.config.task import TaskCfg
from internutopia.core.task import BaseMetric
from internutopia_extension.configs.metrics import TraveledDistanceMetricCfg
from internutopia_extension.metrics.pick import pick


@BaseMetric.register('TraveledDistanceMetric')
class TraveledDistanceMetric(BaseMetric):
    """Length [m] of the path through the observed positions of a robot at each step, in three dimensions.

    Attributes:
        distance: length so far [m].
        position: the last position `(3,)` [m], None before the first step.
    """

    def __init__(self, config: TraveledDistanceMetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.robot_name = config.robot_name
        self.distance = 0.0
        self.position: np.ndarray | None = None

    @override
    def update(self, obs: dict[str, Any]) -> None:
        """Add the distance of one step. KeyError if there is no such robot."""
        robot_obs = pick(obs, self.robot_name, f'metric {self.name!r}: robot')
        position = np.array(robot_obs['position'], np.float64)
        if self.position is not None:
            self.distance += float(np.linalg.norm(position - self.position))
        self.position = position

    @override
    def calc(self) -> float:
        """Return the path length [m]."""
        return self.distance
