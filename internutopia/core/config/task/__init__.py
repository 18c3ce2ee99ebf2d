"""Path of InternUtopia 2.x; see `internutopia.config.task`."""

from internutopia.config.task import MetricCfg, ObjectCfg, RewardCfg, RobotCfg, TaskCfg

__all__ = ['MetricCfg', 'ObjectCfg', 'RewardCfg', 'RobotCfg', 'TaskCfg']
