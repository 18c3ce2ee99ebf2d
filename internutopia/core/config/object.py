"""Path of InternUtopia 2.x; see `internutopia.config`."""

from internutopia.config import ObjectCfg

__all__ = ['ObjectCfg']
