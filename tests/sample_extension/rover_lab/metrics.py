"""Metric of the way that a rover drove."""
# pyright: reportAttributeAccessIssue=false

import numpy as np

from internutopia.core.config.metric import MetricCfg
from internutopia.core.config.task import TaskCfg
from internutopia.core.task import BaseMetric


@BaseMetric.register('WayMetric')
class WayMetric(BaseMetric):
    def __init__(self, config: MetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.positions: list[np.ndarray] = []

    def update(self, obs: dict):
        # in the world frame, by the plain list that the env tells
        position = obs[self.config.robot_name]['position'].astype(float) + self.env_offset
        self.positions.append(position)

    def calc(self):
        way = np.linalg.norm(np.diff(self.positions, axis=0), axis=-1).sum()
        return {'way': np.float32(way), 'end': self.positions[-1], 'steps': len(self.positions)}
