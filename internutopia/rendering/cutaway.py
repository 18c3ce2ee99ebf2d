"""Cutaway pictures: rooms from above without their ceiling and what is above it, as a doll's house shows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.camera import CameraPose
from internutopia.rendering.geom_groups import SHOWN_GROUPS, shown_geoms

_RAYS = 12  # along x and along y, over what is fixed
_HEAD = 1.2  # m above the floor: where rays begin
_LOWEST, _HIGHEST = 0.6, 8.0  # m above that: of a ceiling
_COVERED = 0.5  # share of the rays that begin above a floor and meet a ceiling, at least
_LEVEL = 0.8  # vertical part of the normal of a ceiling, at least: sloping by 37 degrees
_THICK = 0.6  # m: of a ceiling without walls around, at most
_WALLS = 3  # of the four sides on which a point in a room sees walls, at least
_MARGIN = 0.1  # m below the ceiling
_UP = np.array([0.0, 0.0, 1.0])
_SIDES = np.array([(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0)])


def ceiling_height(model: mujoco.MjModel, data: mujoco.MjData) -> float | None:
    """Return the height [m] just below the ceiling of most rooms of the storey at height 0, or the lowest one.

    A ceiling is level, and either thin or over a room, so no crown of a tree is one. None if most of the floor has none
    above. `data` has the poses of geoms.
    """
    fixed = (model.body_weldid[model.geom_bodyid] == 0) & shown_geoms(model)
    fixed &= ~np.isin(model.geom_type, [mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD])
    if not fixed.any():
        return None
    rotations, boxes = data.geom_xmat[fixed].reshape(-1, 3, 3), model.geom_aabb[fixed]
    centres = data.geom_xpos[fixed] + np.einsum('nij,nj->ni', rotations, boxes[:, :3])
    halves = np.einsum('nij,nj->ni', np.abs(rotations), boxes[:, 3:])
    low, high = (centres - halves).min(axis=0), (centres + halves).max(axis=0)
    share = (np.arange(_RAYS) + 0.5) / _RAYS
    above_floor, heights = 0, list[float]()
    for x in low[0] + share * (high[0] - low[0]):
        for y in low[1] + share * (high[1] - low[1]):
            start = np.array([x, y, max(low[2], 0.0) + _HEAD])
            down, _ = _ray(model, data, start, -_UP)
            up, facing = _ray(model, data, start, _UP)
            if 0.0 <= down <= _HEAD + _MARGIN and facing <= 0.0:  # not within a geom
                above_floor += 1
                if _LOWEST <= up <= _HIGHEST and facing <= -_LEVEL and _is_ceiling(model, data, start, up):
                    heights.append(float(start[2]) + up)
    return float(np.median(heights)) - _MARGIN if len(heights) > _COVERED * above_floor else None


def _is_ceiling(model: mujoco.MjModel, data: mujoco.MjData, start: NDArray[np.float64], up: float) -> bool:
    """Return True if what is level above a point is thin, or the point is in a room."""
    top, facing = _ray(model, data, start + (up + _THICK) * _UP, -_UP)
    if 0.0 <= top < _THICK - _MARGIN / 10 and facing <= -_LEVEL:
        return True
    return sum(_ray(model, data, start, side)[0] >= 0.0 for side in _SIDES) >= _WALLS


def _ray(
    model: mujoco.MjModel, data: mujoco.MjData, start: NDArray[np.float64], way: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the distance [m] to the first surface, -1 if there is none, and the part of its normal along the ray.

    The latter is positive within a geom. Faces of meshes may be turned either way: there, it never is.
    """
    met, normal = np.zeros(1, np.int32), np.zeros(3)
    distance = mujoco.mj_ray(model, data, start, way, SHOWN_GROUPS, True, -1, met, normal)
    facing = float(normal @ way) if distance >= 0.0 else 0.0
    return distance, -abs(facing) if model.geom_type[met[0]] == mujoco.mjtGeom.mjGEOM_MESH else facing


@contextmanager
def nothing_above(height: float, camera_pose: CameraPose) -> Iterator[None]:
    """Let the OpenGL context of this thread render nothing above a height [m]."""
    from OpenGL import GL

    normal = -camera_pose.rotation[2]  # of the plane, in the frame of the camera
    GL.glMatrixMode(GL.GL_MODELVIEW)
    GL.glLoadIdentity()
    GL.glClipPlane(GL.GL_CLIP_PLANE0, [*normal.tolist(), height - float(camera_pose.position[2])])
    GL.glEnable(GL.GL_CLIP_PLANE0)
    try:
        yield
    finally:
        GL.glDisable(GL.GL_CLIP_PLANE0)
