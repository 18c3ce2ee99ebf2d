"""Configs, which a user writes: of a run, its tasks, robots, controllers, sensors, objects, metrics and rewards."""

from internutopia.config.config import Config, DistributedConfig, DistributionCfg
from internutopia.config.robot import ControllerCfg, RobotCfg, SensorCfg
from internutopia.config.simulator import AssetLimitsCfg, ContactCfg, PhysxCfg, SimConfig, Simulator
from internutopia.config.task import MetricCfg, ObjectCfg, RewardCfg, TaskCfg

__all__ = [
    'AssetLimitsCfg',
    'Config',
    'ContactCfg',
    'ControllerCfg',
    'DistributedConfig',
    'DistributionCfg',
    'MetricCfg',
    'ObjectCfg',
    'PhysxCfg',
    'RewardCfg',
    'RobotCfg',
    'SensorCfg',
    'SimConfig',
    'Simulator',
    'TaskCfg',
]
