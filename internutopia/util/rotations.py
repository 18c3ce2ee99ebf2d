"""Quaternions and vectors in batched arrays.

Quaternions are `(..., 4)`, scalar first `(w, x, y, z)`, unit length; vectors are `(..., 3)`, or `(..., 2)` in a
horizontal plane. Leading axes broadcast, so the same call serves one env and many. Arrays are of numpy or torch tensors
of any device, on which the results are, too. Formulas: J. Diebel, "Representing Attitude" (2006).

Vectors are computed by columns in numpy: to it each row would be its own loop, which takes many times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.arrays import is_tensor, namespace_of

Array = NDArray[Any]

ZERO_LENGTH = 1e-15
"""A quaternion that is shorter counts as one of length zero, for MuJoCo, too."""


def unit_quat(q: Array) -> Array:
    """Return the quaternion of length 1 of the same direction; NaN for one of length zero, which has none."""
    xp = namespace_of(q)
    length = xp.sqrt((q * q).sum(axis=-1, keepdims=True))
    return q / xp.where(length < ZERO_LENGTH, xp.nan, length)


def quat_multiply(a: Array, b: Array) -> Array:
    """Return the Hamilton product `a * b`: the rotation b followed by a."""
    aw, ax, ay, az = (a[..., k] for k in range(4))
    bw, bx, by, bz = (b[..., k] for k in range(4))
    return namespace_of(a).stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def quat_conjugate(q: Array) -> Array:
    """Return the inverse rotation."""
    conjugate = -q
    conjugate[..., 0] = q[..., 0]
    return conjugate


def quat_rotate(q: Array, v: Array) -> Array:
    """Return the vector v, given in the rotated frame, in the frame that q is given in."""
    return _turned(q[..., 0], q[..., 1:], v)


def quat_rotate_inverse(q: Array, v: Array) -> Array:
    """Return the vector v, given in the frame that q is given in, in the rotated frame."""
    return _turned(q[..., 0], -q[..., 1:], v)


def quat_to_matrix(q: Array) -> NDArray[np.float64]:
    """Return rotation matrices `(..., 3, 3)`, in double precision."""
    xp = namespace_of(q)
    w, x, y, z = xp.moveaxis(xp.asarray(q, dtype=xp.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def yaw_of(q: Array) -> Array:
    """Return the heading (...) in (-pi, pi] [rad]: rotation about z in the order yaw, pitch, roll."""
    w, x, y, z = (q[..., k] for k in range(4))
    return namespace_of(q).arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def quat_from_yaw(yaw: Array) -> Array:
    """Return the rotation about z by `yaw` (...) [rad]."""
    xp = namespace_of(yaw)
    half = 0.5 * xp.asarray(yaw)
    zero = xp.zeros_like(half)
    return xp.stack([xp.cos(half), zero, zero, xp.sin(half)], axis=-1)


def yaw_rotate(yaw: Array, v: Array) -> Array:
    """Rotate vectors of a horizontal plane `(..., 2)` about the vertical by `yaw` (...) [rad]."""
    xp = namespace_of(yaw)
    cos, sin, x, y = xp.cos(yaw), xp.sin(yaw), v[..., 0], v[..., 1]
    return xp.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)


def wrap_angle(angle: Array) -> Array:
    """Return the same angle in (-pi, pi] [rad]."""
    return -((-angle + np.pi) % (2.0 * np.pi) - np.pi)


def _turned(w: Array, axis: Array, v: Array) -> Array:
    """Rotate v by the quaternion of scalar part `w` (...) and vector part `axis` (..., 3)."""
    # v + w t + u x t with t = 2 u x v
    xp = namespace_of(v)
    if xp is not np:  # one launch for a whole vector
        t = 2.0 * xp.linalg.cross(axis, v)
        return v + w[..., None] * t + xp.linalg.cross(axis, t)
    # by columns: np.cross is an order of magnitude slower on small batches
    x, y, z = axis[..., 0], axis[..., 1], axis[..., 2]
    vx, vy, vz = v[..., 0], v[..., 1], v[..., 2]
    tx, ty, tz = 2.0 * (y * vz - z * vy), 2.0 * (z * vx - x * vz), 2.0 * (x * vy - y * vx)
    turned = np.empty_like(tx, np.result_type(w, tx, v), shape=(*np.shape(tx), 3))
    turned[..., 0] = vx + w * tx + (y * tz - z * ty)
    turned[..., 1] = vy + w * ty + (z * tx - x * tz)
    turned[..., 2] = vz + w * tz + (x * ty - y * tx)
    return turned


def squared_length(vectors: Any) -> Any:
    """Return sums of squares `(...)`, added from the first element to the last."""
    if is_tensor(vectors):
        return namespace_of(vectors).square(vectors).sum(axis=-1)
    total = np.square(vectors[..., 0])
    for k in range(1, vectors.shape[-1]):
        total += np.square(vectors[..., k])
    return total


def length(vectors: Any) -> Any:
    """Return lengths `(...)`."""
    return namespace_of(vectors).sqrt(squared_length(vectors))


def cross(a: Any, b: Any) -> Any:
    """Return cross products `(..., 3)`."""
    if is_tensor(a):
        return namespace_of(a).linalg.cross(a, b)
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    product = np.empty_like(a, np.result_type(a, b), shape=np.broadcast_shapes(a.shape, b.shape))
    product[..., 0] = ay * bz - az * by
    product[..., 1] = az * bx - ax * bz
    product[..., 2] = ax * by - ay * bx
    return product
