"""Checks of points that users pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_points(points: ArrayLike, what: str = 'points') -> NDArray[np.float64]:
    """Return points `(n, 3)` [m], also of one point `(3,)`. ValueError for another shape or non-finite numbers."""
    array = np.atleast_2d(np.asarray(points, np.float64))
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f'{what} must have the shape (n, 3), got {np.shape(points)}')
    wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(wrong):
        raise ValueError(f'{what}[{wrong[0]}] is {array[wrong[0]].tolist()}: expected three finite numbers')
    return array
