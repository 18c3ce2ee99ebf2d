"""Elevation of the ground: a map read once by rays from above, or rays cast from above a robot in each step.

To look a height up in the map costs next to nothing, a ray into a scene microseconds. Things that move later stay in
the map where they were.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.learning import ElevationCfg
from internutopia.engines.base import World
from internutopia.engines.views import ArticulationView
from internutopia.util.arrays import ArrayMaker

VISIBLE = (0, 1, 2)  # groups of geoms that are the scene and what stands in it
ABOVE_BASE = 0.5  # m, where rays start: what hangs higher is not in the way of a robot
_GRIDS_KEPT = 4
_kept: OrderedDict[tuple[object, ...], NDArray[np.float64]] = OrderedDict()


class ElevationMap:
    """Heights of the ground at places (x, y) of the env frame.

    Args:
        world: the world of the envs.
        view: a robot, which rays pass through.
        env_id: an env whose scene is that of all.
        cfg: area and resolution.
    """

    def __init__(self, world: World, view: ArticulationView, env_id: int, cfg: ElevationCfg):
        heights, arrays = _heights_below(world, view, env_id, cfg), world.arrays
        self._heights = arrays.asarray(heights, 'float32')
        self._low = arrays.asarray([cfg.x[0], cfg.y[0]], 'float32')
        self._last = arrays.asarray(np.array(heights.shape) - 1, 'int64')
        self._cell = cfg.cell
        self._xp: Any = arrays.xp

    def heights(self, places: Any) -> Any:
        """Return heights `(...)` [m] of the cells at places `(..., 2)` [m]; outside the map, of the nearest cell."""
        xp = self._xp
        cells = xp.astype(xp.floor((places[..., :2] - self._low) / self._cell), xp.int64)
        cells = xp.minimum(cells.clip(min=0), self._last)
        return self._heights[cells[..., 0], cells[..., 1]]


def _heights_below(world: World, view: ArticulationView, env_id: int, cfg: ElevationCfg) -> NDArray[np.float64]:
    """Return the heights `(nx, ny)` [m] of an env; those of envs in the very same state, such as probes, are kept."""
    state = world.get_state(env_id)
    arrays = [(name, state.arrays[name].tobytes()) for name in sorted(state.arrays)]
    key = state.model, *arrays, view.name, cfg.model_dump_json()
    if key not in _kept:
        xs, ys = (np.arange(low + 0.5 * cfg.cell, high, cfg.cell) for low, high in (cfg.x, cfg.y))
        origins = np.stack([*np.meshgrid(xs, ys, indexing='ij'), np.full((len(xs), len(ys)), cfg.top)], axis=-1)
        rays = origins.reshape(1, -1, 3)
        down = np.broadcast_to([0.0, 0.0, -1.0], rays.shape)
        ids = np.array([env_id])  # rays are cast on the host, for an env by its number
        distances = view.cast_rays(ids, rays, down, groups=VISIBLE, link=view.body_names[0], through_robot=True)
        heights = cfg.top - distances.reshape(len(xs), len(ys))
        heights[~np.isfinite(heights)] = 0.0  # where there is nothing below
        _kept[key] = heights
        if len(_kept) > _GRIDS_KEPT:
            _kept.popitem(last=False)
    return _kept[key]


class GroundBelow:
    """Current heights of the ground around a robot, in any scene; moving and standing things count, too.

    Args:
        view: the robot, which rays pass through.
        base_position: gives where its base is `(n, 3)` [m].
        arrays: makes arrays of the kind that places and heights are.
    """

    def __init__(self, view: ArticulationView, base_position: Callable[[], Any], arrays: ArrayMaker):
        self._view = view
        self._base_position = base_position
        self._arrays = arrays

    def heights(self, places: Any) -> Any:
        """Return heights `(n, k)` [m] of the ground at places `(n, k, 2)` [m] around each env's robot; 0 for none."""
        xp, arrays = self._arrays.xp, self._arrays
        top = xp.zeros_like(places[..., :1]) + self._base_position()[:, None, 2:] + ABOVE_BASE
        origins = xp.astype(xp.concat([places[..., :2], top], axis=-1), xp.float64)
        down = xp.zeros_like(origins) + arrays.constant((0.0, 0.0, -1.0))
        distances = self._view.cast_rays(
            arrays.arange(len(places)),
            origins,
            down,
            groups=VISIBLE,
            link=self._view.body_names[0],
            through_robot=True,
        )
        heights = xp.astype(origins[..., 2] - distances, xp.float32)
        return xp.where(xp.isfinite(heights), heights, 0.0)
