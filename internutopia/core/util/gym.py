"""Joint orders under the path of 2.x; see `internutopia.compat.v2.core_util`."""

from internutopia.compat.v2.core_util import gym_adapter

__all__ = ['gym_adapter']
