"""Path of InternUtopia 2.x; see `internutopia.config.robot`."""

from internutopia.config.robot import BaseCfg, SensorCfg

__all__ = ['BaseCfg', 'SensorCfg']
