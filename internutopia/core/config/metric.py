"""Path of InternUtopia 2.x; see `internutopia.config`."""

from internutopia.config import MetricCfg

__all__ = ['MetricCfg']
