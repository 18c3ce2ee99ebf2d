"""Distance to the goals of navigation, as a function of points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from internutopia_extension.configs.tasks import NavigationTaskCfg

Distance = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Distances `(n,)` [m] of points on the ground `(n, 3)` [m] to the nearest goal; infinite where there is no way."""


def goal_distance(config: NavigationTaskCfg) -> Distance:
    """What measures the distances of a task, as its `distance` says."""
    goals = config.episode.goal_points
    return lambda points: np.linalg.norm(points[:, None] - goals, axis=-1).min(axis=1)
