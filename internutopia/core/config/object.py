"""Path of InternUtopia 2.x; see `internutopia.config`."""

from internutopia.config import ObjectCfg
from internutopia.config.base import BaseCfg

__all__ = ['BaseCfg', 'ObjectCfg']
