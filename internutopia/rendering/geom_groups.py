"""Geom groups that images show: those that MuJoCo shows if not set otherwise."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

SHOWN_GROUPS: NDArray[np.uint8] = mujoco.MjvOption().geomgroup.copy()
"""1 for each group `(6,)` that is shown, as `mj_ray` takes it."""


def shown_geoms(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return True for each geom `(ngeom,)` of a group that is shown."""
    return SHOWN_GROUPS[np.clip(model.geom_group, 0, len(SHOWN_GROUPS) - 1)] > 0
