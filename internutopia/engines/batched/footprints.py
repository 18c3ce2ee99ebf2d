"""Footprints: what links collide with, and how that shrinks along x and y of each link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Footprint:
    """Collision geoms of some links, in the links' frames.

    Attributes:
        geoms: their ids in the model `(k,)`.
        middles: mean place of all geoms of the same link `(k, 3)` [m].
        offsets: places relative to that `(k, 3)` [m].
        halves: from the middle of a capsule to the centre of its end; of other geoms, along z, their second size, which
            stays what it is `(k, 3)` [m].
    """

    geoms: NDArray[np.intp]
    middles: NDArray[np.float64]
    offsets: NDArray[np.float64]
    halves: NDArray[np.float64]


def footprint_of(model: mujoco.MjModel, bodies: Sequence[int]) -> Footprint:
    """Return the footprint of links, in the model's own size."""
    solid = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    geoms = np.flatnonzero(np.isin(model.geom_bodyid, bodies) & solid)
    positions, links = model.geom_pos[geoms], model.geom_bodyid[geoms]
    middles = np.array([positions[links == link].mean(axis=0) for link in links]).reshape(-1, 3)
    axes = np.tile([0.0, 0.0, 1.0], (len(geoms), 1))
    for axis, geom in zip(axes, geoms, strict=True):
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE:
            mujoco.mju_rotVecQuat(axis, axis.copy(), model.geom_quat[geom])
    return Footprint(geoms, middles, positions - middles, axes * model.geom_size[geoms, 1:2])
