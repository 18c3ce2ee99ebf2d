"""Path of InternUtopia 2.x; see `internutopia.config`."""

from internutopia.config import (
    AssetLimitsCfg,
    Config,
    ContactCfg,
    ControllerCfg,
    DistributedConfig,
    DistributionCfg,
    MetricCfg,
    ObjectCfg,
    RewardCfg,
    RobotCfg,
    SensorCfg,
    SimConfig,
    Simulator,
    TaskCfg,
)

__all__ = [
    'AssetLimitsCfg',
    'Config',
    'ContactCfg',
    'ControllerCfg',
    'DistributedConfig',
    'DistributionCfg',
    'MetricCfg',
    'ObjectCfg',
    'RewardCfg',
    'RobotCfg',
    'SensorCfg',
    'SimConfig',
    'Simulator',
    'TaskCfg',
]
