"""Registries of implementations, by the kind of thing that is registered in them."""

from __future__ import annotations

from typing import Any

from internutopia.core.object import BaseObject
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.sensor.sensor import BaseSensor
from internutopia.core.task.metric import BaseMetric
from internutopia.core.task.reward import BaseReward
from internutopia.core.task.task import BaseTask

REGISTRIES: dict[str, dict[str, Any]] = {
    'robot': BaseRobot.robots,
    'controller': BaseController.controllers,
    'sensor': BaseSensor.sensors,
    'object': BaseObject.objs,
    'task': BaseTask.tasks,
    'metric': BaseMetric.metrics,
    'reward': BaseReward.rewards,
}
