"""Helpers of the controllers that go somewhere: settings, distances in the plane, observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.robot import ControllerCfg
from internutopia.util.arrays import namespace_of

FORWARD_SPEED = 1.0  # [m/s], where a config has None
ROTATION_SPEED = 8.0  # [rad/s]
THRESHOLD = 0.02  # [m or rad]


def setting(config: ControllerCfg, name: str, default: float) -> float:
    """Return a number from a config; `default` where it is None or there is no such field."""
    value = getattr(config, name, None)
    return default if value is None else float(value)


def planar_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the distance `(...)` [m] of points `(..., 3)` seen from above."""
    x, y = a[..., 0] - b[..., 0], a[..., 1] - b[..., 1]
    return namespace_of(x).sqrt(x * x + y * y)


def as_array(values: Any) -> Any:
    """Return numbers as an array; an array of any kind as it is."""
    return values if hasattr(values, 'device') else np.asarray(values)


def observed(value: NDArray[Any] | np.generic) -> Any:
    """Return a value `(*batch_shape)` for an observation: a plain Python value where there is no env axis."""
    return value if value.ndim else value.item()
