"""Ray casts in the envs of one batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from internutopia.core.world.batched.env_batch import BatchArrays

_BEHIND = 1e-6  # [m], how far behind a hit a ray goes on that passes through it


class RayCaster:
    """Casts rays in some slots of a batch, ascending, at geoms of some geom groups, but not those of body `body`."""

    def __init__(self, batch: BatchArrays, slots: NDArray[np.intp], geom_groups: Sequence[int], body: int):
        self._batch = batch
        self._slots = slots
        self._geom_groups = geom_groups
        self._body = body

    def cast(
        self, origins: NDArray[np.float64], directions: NDArray[np.float64], through: Sequence[int]
    ) -> NDArray[np.float64]:
        """Distances `(n, rays)` [m], infinite for a miss; rays pass through geoms of the bodies `through`."""
        distances, geoms = self._batch.ray(self._slots, origins, directions, self._geom_groups, self._body)
        if len(through) < 2:  # none, or the one that is left out anyway
            return distances
        bodies = self._batch.scene.model.geom_bodyid
        own = np.append(np.isin(bodies, through), False)  # the last one is for geom -1, a miss
        blocked = own[geoms]
        while blocked.any():
            # only what is blocked is cast again: as many rays per slot as the slot with the most of them has
            rows = np.flatnonzero(blocked.any(axis=1))
            count = int(blocked.sum(axis=1).max())
            rays = np.argsort(~blocked[rows], axis=1, kind='stable')[:, :count]
            again = rows[:, None], rays
            start = np.where(blocked[again], distances[again] + _BEHIND, 0.0)
            begin = np.broadcast_to(origins, directions.shape)[again] + start[..., None] * directions[again]
            further, geoms_behind = self._batch.ray(
                self._slots[rows], begin, directions[again], self._geom_groups, self._body
            )
            distances[again] = np.where(blocked[again], start + further, distances[again])
            geoms[again] = np.where(blocked[again], geoms_behind, geoms[again])
            blocked = own[geoms]
        return distances
