"""Metric that records a robot's observations."""

from __future__ import annotations

import copy
from typing import Any

from typing_extensions import override

from internutopia.config.task import TaskCfg
from internutopia.core.task import BaseMetric
from internutopia_extension.configs.metrics import RecordingMetricCfg
from internutopia_extension.metrics.pick import pick


@BaseMetric.register('RecordingMetric')
class RecordingMetric(BaseMetric):
    """Recorder of the observation of one robot at each step, or some fields of it.

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
        """Return everything recorded."""
        return self.obs
