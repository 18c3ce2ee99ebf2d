"""Path of InternUtopia 2.x; see `internutopia.config`."""

from internutopia.config import RewardCfg

__all__ = ['RewardCfg']
