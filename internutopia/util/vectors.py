"""Vectors of a few elements `(..., k)`, of numpy or torch.

Numpy gets columns: to it each row would be a loop of its own, which takes many times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.util.arrays import is_tensor, namespace_of


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
