"""Path of InternUtopia 2.x; see `internutopia.config.config`."""

from internutopia.config.config import DistributionCfg, RayDistributionCfg

__all__ = ['DistributionCfg', 'RayDistributionCfg']
