"""Elevation map: heights of the ground of a scene on a grid, read once by rays from above.

Looking a height up costs next to nothing, a ray into a scene microseconds. Things that move later stay in the map where
they were.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.core.config.learning import ElevationCfg
from internutopia.core.util.arrays import ArrayMaker
from internutopia.core.world.views import ArticulationView

VISIBLE = (0, 1, 2)  # groups of geoms that are the scene and what stands in it


class ElevationMap:
    """Heights of the ground at places (x, y) of the env frame.

    Args:
        view: a robot, which is looked through.
        env_id: an env whose scene is that of all.
        cfg: where to look.
        arrays: makes arrays of the kind that places and heights are.
    """

    def __init__(self, view: ArticulationView, env_id: int, cfg: ElevationCfg, arrays: ArrayMaker):
        xs, ys = (np.arange(low + 0.5 * cfg.cell, high, cfg.cell) for low, high in (cfg.x, cfg.y))
        origins = np.stack([*np.meshgrid(xs, ys, indexing='ij'), np.full((len(xs), len(ys)), cfg.top)], axis=-1)
        rays = origins.reshape(1, -1, 3)
        down = np.broadcast_to([0.0, 0.0, -1.0], rays.shape)
        ids = np.array([env_id])  # rays are cast on the host, for an env by its number
        distances = view.cast_rays(ids, rays, down, groups=VISIBLE, link=view.body_names[0], through_robot=True)
        heights = cfg.top - distances.reshape(len(xs), len(ys))
        heights[~np.isfinite(heights)] = 0.0  # where there is nothing below
        self._heights = arrays.asarray(heights, 'float32')
        self._low = arrays.asarray([cfg.x[0], cfg.y[0]], 'float32')
        self._last = arrays.asarray([len(xs) - 1, len(ys) - 1], 'int64')
        self._cell = cfg.cell
        self._xp: Any = arrays.xp

    def heights(self, places: Any) -> Any:
        """Heights `(...)` [m] of the cells at places `(..., 2)` [m]; outside the map, of the nearest cell."""
        xp = self._xp
        cells = xp.astype(xp.floor((places[..., :2] - self._low) / self._cell), xp.int64)
        cells = xp.minimum(cells.clip(min=0), self._last)
        return self._heights[cells[..., 0], cells[..., 1]]
