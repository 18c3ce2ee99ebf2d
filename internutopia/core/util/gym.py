"""Joint orders under the path of 2.x; see `internutopia.compat.v2.joint_order`."""

from internutopia.compat.v2.joint_order import gym_adapter

__all__ = ['gym_adapter']
