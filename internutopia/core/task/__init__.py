"""Tasks: one episode's scene, robots, objects, metrics, reward and end."""

from internutopia.core.task.metric import BaseMetric
from internutopia.core.task.reward import BaseReward
from internutopia.core.task.task import BaseTask

__all__ = ['BaseMetric', 'BaseReward', 'BaseTask']
