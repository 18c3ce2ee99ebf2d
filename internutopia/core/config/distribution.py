"""Path of InternUtopia 2.x; see `internutopia.config.distribution`."""

from internutopia.config.distribution import DistributionCfg, RayDistributionCfg

__all__ = ['DistributionCfg', 'RayDistributionCfg']
