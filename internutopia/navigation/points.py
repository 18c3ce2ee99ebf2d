"""Points that users pass, and distances between them that metrics are relative to; without NumPy, for configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

STEP = 0.25
"""Distance [m] between two points of a path, as of an agent's actions."""
STILL = 0.1
"""Length [m] of a path, or distance, that is no move: robots settle and sway where they stand."""
SCALE = 3.0
"""Distance [m] at which a path counts as off the reference: the radius of success in vision-and-language navigation."""


def as_points(points: ArrayLike, what: str = 'points') -> NDArray[np.float64]:
    """Return points `(n, 3)` [m], also of one point `(3,)`. ValueError for another shape or non-finite numbers."""
    import numpy as np

    array = np.atleast_2d(np.asarray(points, np.float64))
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f'{what} must have the shape (n, 3), got {np.shape(points)}')
    wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(wrong):
        raise ValueError(f'{what}[{wrong[0]}] is {array[wrong[0]].tolist()}: expected three finite numbers')
    return array
