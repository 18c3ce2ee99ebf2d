"""Quaternions in torch under the path of 2.x; see `internutopia.compat.v2.core_util`."""

from internutopia.compat.v2.core_util import (
    quat_rotate_inverse,
    quaternion_conjugate,
    quaternion_multiply,
    quaternion_to_gravity_component,
)

__all__ = ['quat_rotate_inverse', 'quaternion_conjugate', 'quaternion_multiply', 'quaternion_to_gravity_component']
