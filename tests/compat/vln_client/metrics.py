"""The metric of the client."""

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.core.config import MetricCfg, TaskCfg
from internutopia.core.task.metric import BaseMetric


@BaseMetric.register('ClientPathMetric')
class ClientPathMetrics(BaseMetric):
    """How far the robot went, and how near the goal it ended."""

    def __init__(self, config: MetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.config: Any = config
        self.metrics = {}  # pyright: ignore[reportAttributeAccessIssue] (shadows the registry, as such packages do)
        data = getattr(task_config, 'data')  # noqa: B009
        self.goal = data['reference_path'][-1]
        self.fail_reason = ''
        self.length = 0.0
        self.updates = 0
        self.position: Any = None

    def update(self, obs: dict[str, Any]) -> None:
        position = obs['h1']['globalgps']
        if self.position is not None:
            self.length += np.linalg.norm(position - self.position)
        self.position = position
        self.updates += 1

    def calc(self) -> list[dict[str, Any]]:
        distance = np.linalg.norm((self.position - self.goal)[:2])
        success = bool(distance <= self.config.success_distance)
        return [
            {
                'steps': self.updates,
                'TL': self.length,
                'NE': distance,
                'success': success,
                'spl': success * self.config.shortest_to_goal_distance / max(self.length, 1e-6),
                'fail_reason': self.fail_reason,
            }
        ]
