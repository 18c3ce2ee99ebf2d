"""Ray casts in the envs of one batch."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

_LAST_GROUP = mujoco.mjNGROUP - 1  # geoms of a higher group count as of this one

Geoms = NDArray[np.bool_]  # of a model, `(ngeom,)`


@dataclass(frozen=True)
class Sight:
    """Visibility of geoms to rays in the models of a batch.

    Attributes:
        groups: of the geoms that are seen.
        through: bodies that rays pass through.
    """

    groups: tuple[int, ...]
    through: tuple[int, ...]

    def seen(self, model: mujoco.MjModel) -> Geoms:
        """Return the geoms that stop rays."""
        groups = np.clip(model.geom_group, 0, _LAST_GROUP)
        return np.isin(groups, self.groups) & ~np.isin(model.geom_bodyid, self.through)
