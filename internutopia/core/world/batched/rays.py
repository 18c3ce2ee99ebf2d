"""Ray casts in the envs of one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

_BEHIND = 1e-6  # [m], how far behind a hit a ray goes on that passes through it
_LAST_GROUP = mujoco.mjNGROUP - 1  # geoms of a higher group count as of this one

Geoms = NDArray[np.bool_]  # of a model, `(ngeom,)`
Ray = Callable[
    [NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.int32]]
]


@dataclass(frozen=True)
class Sight:
    """What rays see of the models of a batch.

    Attributes:
        groups: of the geoms that are seen.
        body: whose geoms are not seen.
        through: bodies that rays pass through, `body` or not among them.
    """

    groups: tuple[int, ...]
    body: int
    through: tuple[int, ...]

    def passed(self, model: mujoco.MjModel) -> Geoms:
        """The geoms that rays pass through, those of `body` apart."""
        bodies = model.geom_bodyid
        return np.isin(bodies, self.through) & (bodies != self.body)

    def seen(self, model: mujoco.MjModel) -> Geoms:
        """The geoms that stop rays."""
        groups = np.clip(model.geom_group, 0, _LAST_GROUP)
        return np.isin(groups, self.groups) & (model.geom_bodyid != self.body) & ~self.passed(model)


def cast_past(
    passed: Geoms, ray: Ray, slots: NDArray[np.intp], origins: NDArray[np.float64], directions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distances `(n, rays)` [m], infinite for a miss, along rays that pass through some geoms.

    Args:
        passed: those geoms.
        ray: what `EnvBatch.ray` is, which sees them.
        slots: n slots, ascending.
        origins: see `EnvBatch.ray`.
        directions: see `EnvBatch.ray`.
    """
    distances, geoms = ray(slots, origins, directions)
    if not passed.any():
        return distances
    passed = np.append(passed, False)  # the last one is for geom -1, a miss
    blocked = passed[geoms]
    while blocked.any():
        # only what is blocked is cast again: as many rays per slot as the slot with the most of them has
        rows = np.flatnonzero(blocked.any(axis=1))
        count = int(blocked.sum(axis=1).max())
        rays = np.argsort(~blocked[rows], axis=1, kind='stable')[:, :count]
        again = rows[:, None], rays
        start = np.where(blocked[again], distances[again] + _BEHIND, 0.0)
        begin = np.broadcast_to(origins, directions.shape)[again] + start[..., None] * directions[again]
        further, geoms_behind = ray(slots[rows], begin, directions[again])
        distances[again] = np.where(blocked[again], start + further, distances[again])
        geoms[again] = np.where(blocked[again], geoms_behind, geoms[again])
        blocked = passed[geoms]
    return distances
