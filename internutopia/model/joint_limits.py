"""Joint limits of a model, and positions outside of them."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

LIMIT_TOLERANCE = 1e-3  # rad or m, past the limit of a joint


def joint_ranges(model: mujoco.MjModel, joints: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the limits of hinges and slides `(n, 2)` [rad or m], infinite where there are none."""
    return np.where(model.jnt_limited[joints, None] != 0, model.jnt_range[joints], [-np.inf, np.inf])


def outside_limits(names: Iterable[str], positions: ArrayLike, ranges: NDArray[np.float64]) -> str:
    """Return text on joints whose positions `(n,)` are outside their limits, with both; empty if there is none."""
    values = np.asarray(positions)
    low, high = ranges.T
    wrong = (values < low - LIMIT_TOLERANCE) | (values > high + LIMIT_TOLERANCE)
    if not wrong.any():
        return ''
    rows = zip(names, wrong, values, low, high, strict=True)
    return ', '.join(
        f'{name} {value:g} (limits {a:.3g} to {b:.3g})' for name, is_wrong, value, a, b in rows if is_wrong
    )
