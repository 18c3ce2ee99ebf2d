"""Quaternions in torch, under the names of 2.x: tensors in, tensors out, on the device that they are on.

Quaternions are `(..., 4)`, scalar first `(w, x, y, z)`. The same for arrays of numpy too: `core.util.rotations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from internutopia.util import rotations

if TYPE_CHECKING:
    from torch import Tensor


def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    """Rotate vectors `v` (N, 3) by the inverse of unit quaternions `q` (N, 4), into the rotated frame.

    For example a velocity in the world, seen from a body of that orientation. Both have one dtype.
    """
    return rotations.quat_rotate_inverse(q, v)  # pyright: ignore[reportArgumentType,reportReturnType]


def quaternion_multiply(q1: Tensor, q2: Tensor) -> Tensor:
    """Return the Hamilton product `q1 * q2` (..., 4): the rotation q2 followed by q1."""
    return rotations.quat_multiply(q1, q2)  # pyright: ignore[reportArgumentType,reportReturnType]


def quaternion_conjugate(q: Tensor) -> Tensor:
    """Return the inverse of unit quaternions (..., 4)."""
    return rotations.quat_conjugate(q)  # pyright: ignore[reportArgumentType,reportReturnType]


def quaternion_to_gravity_component(quaternion: Tensor) -> Tensor:
    """Return the direction of gravity, `(0, 0, -1)` in the world, in the frames of bodies (..., 4): (..., 3)."""
    down = quaternion.new_tensor([0.0, 0.0, -1.0]).expand(*quaternion.shape[:-1], 3)
    return quat_rotate_inverse(quaternion, down)
