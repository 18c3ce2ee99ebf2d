"""Path of InternUtopia 2.x; see `internutopia.config.robot`."""

from internutopia.config.robot import BaseCfg, ControllerCfg, RobotCfg, SensorCfg

__all__ = ['BaseCfg', 'ControllerCfg', 'RobotCfg', 'SensorCfg']
