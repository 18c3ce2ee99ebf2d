"""Quaternions in torch under the path of 2.x; see `internutopia.compat.v2.quaternions`."""

from internutopia.compat.v2.quaternions import (
    quat_rotate_inverse,
    quaternion_conjugate,
    quaternion_multiply,
    quaternion_to_gravity_component,
)

__all__ = ['quat_rotate_inverse', 'quaternion_conjugate', 'quaternion_multiply', 'quaternion_to_gravity_component']
