"""The metric of the client: the usual figures of instruction following."""

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.core.config import MetricCfg, TaskCfg
from internutopia.core.task.metric import BaseMetric


@BaseMetric.register('ClientPathMetric')
class ClientPathMetrics(BaseMetric):
    """How far the robot went, and how near the goal it ended.

    TL: length of its way [m]; NE: distance from the goal at the end [m]; SR: whether it ended near the goal and did
    not fail; OS: whether it was near the goal at any time; SPL: SR times shortest way by way taken; NDTW: 1 if it was
    on the reference path at the end of each action, less the farther it was from it. All in the plane.
    """

    def __init__(self, config: MetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.config: Any = config
        self.metrics = {}  # pyright: ignore[reportAttributeAccessIssue] (shadows the registry, as such packages do)
        data = getattr(task_config, 'data')  # noqa: B009
        self.path = np.array(data['reference_path'])[:, :2]
        self.places = [np.array(data['start_position'])[:2]]
        self.stops = self.places.copy()  # where it was at the end of an action
        self.fail_reason = ''
        self.updates = 0

    def update(self, obs: dict[str, Any]) -> None:
        self.places.append(obs['h1']['globalgps'][:2])
        if obs['h1']['finish_action']:
            self.stops.append(self.places[-1])
        self.updates += 1

    def calc(self) -> list[dict[str, Any]]:
        places = np.array(self.places)
        near, shortest = self.config.success_distance, self.config.shortest_to_goal_distance
        length = np.linalg.norm(np.diff(places, axis=0), axis=1).sum()
        distances = np.linalg.norm(places - self.path[-1], axis=1)
        success = bool(distances[-1] <= near) and not self.fail_reason
        return [
            {
                'steps': self.updates,
                'success': success,
                'fail_reason': self.fail_reason,
                'TL': length,
                'NE': distances[-1],
                'SR': float(success),
                'OS': float((distances <= near).any()),
                'SPL': success * shortest / max(shortest, length),
                'NDTW': np.exp(-warping_distance(np.array(self.stops), self.path) / (len(self.path) * near)),
            }
        ]


def warping_distance(places: np.ndarray, path: np.ndarray) -> float:
    """Sum of distances between two sequences of points, matched in order so that it is least (dynamic time warping)."""
    distances = np.linalg.norm(places[:, None] - path[None], axis=2)
    best = np.cumsum(distances[0])
    for row in distances[1:]:
        before, best = best, np.empty_like(best)
        for column, distance in enumerate(row):
            reached = [before[column]] if column == 0 else [before[column], before[column - 1], best[column - 1]]
            best[column] = distance + min(reached)
    return float(best[-1])
