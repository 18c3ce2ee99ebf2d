"""Configs, which a user writes: of a run, its tasks, robots, controllers, sensors, objects, metrics and rewards.

With `INTERNUTOPIA_COMPAT=2.x` in the environment, the import makes modules of Isaac Sim importable
(`internutopia.compat`): scripts of 2.x import them at their top.
"""

from internutopia.compat.omni.finder import announce, install
from internutopia.core.config.asset_limits import AssetLimitsCfg
from internutopia.core.config.compat import compat_of_process
from internutopia.core.config.config import Config, DistributedConfig
from internutopia.core.config.contact import ContactCfg
from internutopia.core.config.distribution import DistributionCfg
from internutopia.core.config.metric import MetricCfg
from internutopia.core.config.object import ObjectCfg
from internutopia.core.config.robot import ControllerCfg, RobotCfg
from internutopia.core.config.sensor import SensorCfg
from internutopia.core.config.simulator import SimConfig, Simulator
from internutopia.core.config.task import TaskCfg
from internutopia.core.config.task.reward import RewardCfg

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

announce()
if compat_of_process() == '2.x':
    install()
