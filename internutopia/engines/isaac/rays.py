"""Ray casts in one env on Isaac Sim: on the host, at the geoms of the host's model of the env."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

_BEHIND = 1e-6  # [m], how far behind a hit a ray goes on that passes through it


def cast_rays(
    data: mujoco.MjData,
    origin: NDArray[np.float64],
    directions: NDArray[np.float64],
    groups: Sequence[int],
    body: int,
    through: Sequence[int],
) -> NDArray[np.float64]:
    """Return the distances `(rays,)` [m] to the first geom of some geom groups, infinite for a miss.

    Rays begin at `origin` `(3,)` and have unit vectors `(rays, 3)`; they do not see the body `body`, and pass through
    the bodies `through`.
    """
    model = data.model
    seen = np.isin(np.arange(mujoco.mjNGROUP), groups).astype(np.uint8)
    count = len(directions)
    distances, geoms = np.zeros(count), np.zeros(count, np.int32)
    vectors = np.ascontiguousarray(directions, np.float64).reshape(-1)
    mujoco.mj_multiRay(model, data, origin, vectors, seen, True, body, geoms, distances, None, count, mujoco.mjMAXVAL)
    passes = np.append(np.isin(model.geom_bodyid, through), False)  # the last one is for geom -1, a miss
    geom = np.zeros(1, np.int32)
    for ray in np.flatnonzero(passes[geoms]).tolist():
        geom[0], direction = geoms[ray], directions[ray]
        while passes[geom[0]]:
            distances[ray] += _BEHIND
            begin = origin + distances[ray] * direction
            distances[ray] += mujoco.mj_ray(model, data, begin, direction, seen, True, body, geom)
        geoms[ray] = geom[0]
    distances[geoms < 0] = np.inf
    return distances
