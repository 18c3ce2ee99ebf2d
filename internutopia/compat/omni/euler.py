"""Euler angles, rotation matrices and quaternions, in double precision, for any leading axes.

Angles are `(..., 3)` [rad], about x, y and z in this order in the array. Extrinsic: turned about the fixed axes x, y, z
one after the other, `R = Rz Ry Rx`. Intrinsic: about the axes as they have been turned so far, `R = Rx Ry Rz`.
Quaternions are `(..., 4)`, scalar first; matrices `(..., 3, 3)` act on columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import quat_multiply, quat_to_matrix

Array = NDArray[np.float64]

_SINGULAR = 1e-7  # cosine of the middle angle below which the other two turn about the same axis


def radians(angles: Any, degrees: bool) -> Array:
    """Convert angles that may be in degrees to radians."""
    angles = np.asarray(angles, np.float64)
    return np.radians(angles) if degrees else angles


def quats_from_euler(angles: Any, extrinsic: bool) -> Array:
    """Convert Euler angles to quaternions."""
    half = 0.5 * np.asarray(angles, np.float64)
    elementary = np.zeros((3, *half.shape[:-1], 4))
    for axis in range(3):
        elementary[axis, ..., 0] = np.cos(half[..., axis])
        elementary[axis, ..., 1 + axis] = np.sin(half[..., axis])
    x, y, z = elementary
    return quat_multiply(z, quat_multiply(y, x)) if extrinsic else quat_multiply(x, quat_multiply(y, z))


def euler_from_matrices(matrices: Any, extrinsic: bool) -> Array:
    """Convert rotation matrices to Euler angles, about y within -pi/2..pi/2; where it is either, 0 about z."""
    m = np.asarray(matrices, np.float64)
    if extrinsic:
        sine, x_parts, z_parts = -m[..., 2, 0], (m[..., 2, 1], m[..., 2, 2]), (m[..., 1, 0], m[..., 0, 0])
        x_alone = np.arctan2(-m[..., 1, 2], m[..., 1, 1])
    else:
        sine, x_parts, z_parts = m[..., 0, 2], (-m[..., 1, 2], m[..., 2, 2]), (-m[..., 0, 1], m[..., 0, 0])
        x_alone = np.arctan2(m[..., 2, 1], m[..., 1, 1])
    cosine = np.hypot(*x_parts)
    singular = cosine < _SINGULAR
    x, z = np.where(singular, x_alone, np.arctan2(*x_parts)), np.where(singular, 0.0, np.arctan2(*z_parts))
    return np.stack([x, np.arctan2(sine, cosine), z], axis=-1)


def quats_from_matrices(matrices: Any) -> Array:
    """Convert rotation matrices to unit quaternions."""
    m = np.asarray(matrices, np.float64)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    x, y, z = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    # four times q_i q_j: each row is the quaternion times one of its own elements, the largest one is safe to divide by
    products = np.stack(
        [
            np.stack([1 + xx + yy + zz, x, y, z], axis=-1),
            np.stack([x, 1 + xx - yy - zz, xy, xz], axis=-1),
            np.stack([y, xy, 1 - xx + yy - zz, yz], axis=-1),
            np.stack([z, xz, yz, 1 - xx - yy + zz], axis=-1),
        ],
        axis=-2,
    )
    largest = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)
    row = np.take_along_axis(products, largest[..., None, None], axis=-2)[..., 0, :]
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


def matrices_from_quats(quats: Any) -> Array:
    """Convert quaternions of any length but 0 to rotation matrices."""
    quats = np.asarray(quats, np.float64)
    return quat_to_matrix(quats / np.linalg.norm(quats, axis=-1, keepdims=True))
