"""Joints under the path of 2.x; see `internutopia.compat.v2.joints`."""

from internutopia.compat.v2.joints import create_joint

__all__ = ['create_joint']
