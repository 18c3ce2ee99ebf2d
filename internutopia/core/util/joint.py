"""Joints under the path of 2.x; see `internutopia.compat.v2.core_util`."""

from internutopia.compat.v2.core_util import create_joint

__all__ = ['create_joint']
