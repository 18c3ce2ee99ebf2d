"""Cutaway pictures: rooms from above without their ceiling and what is above it, as a doll's house shows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import mujoco
import numpy as np

from internutopia.rendering.camera import CameraPose

_RAYS = 12  # along x and along y, over what is fixed
_HEAD = 1.2  # m above the floor: where rays begin
_LOWEST, _HIGHEST = 0.6, 8.0  # m above that: of a ceiling
_COVERED = 0.5  # share of the rays that begin above a floor and meet a ceiling, at least
_MARGIN = 0.1  # m below the ceiling
_SEEN = np.array([1, 1, 1, 0, 0, 0], np.uint8)  # geom groups
_UP = np.array([0.0, 0.0, 1.0])


def ceiling_height(model: mujoco.MjModel, data: mujoco.MjData) -> float | None:
    """Return the height [m] just below the ceiling of most rooms of the storey at height 0, or the lowest one.

    None if most of the floor has no ceiling above. `data` has the poses of geoms.
    """
    fixed = (model.body_weldid[model.geom_bodyid] == 0) & (model.geom_group < int(_SEEN.sum()))
    fixed &= ~np.isin(model.geom_type, [mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD])
    if not fixed.any():
        return None
    rotations, boxes = data.geom_xmat[fixed].reshape(-1, 3, 3), model.geom_aabb[fixed]
    centres = data.geom_xpos[fixed] + np.einsum('nij,nj->ni', rotations, boxes[:, :3])
    halves = np.einsum('nij,nj->ni', np.abs(rotations), boxes[:, 3:])
    low, high = (centres - halves).min(axis=0), (centres + halves).max(axis=0)
    share = (np.arange(_RAYS) + 0.5) / _RAYS
    above_floor, heights = 0, list[float]()
    met, normal = np.zeros(1, np.int32), np.zeros(3)
    for x in low[0] + share * (high[0] - low[0]):
        for y in low[1] + share * (high[1] - low[1]):
            start = np.array([x, y, max(low[2], 0.0) + _HEAD])
            down = mujoco.mj_ray(model, data, start, -_UP, _SEEN, True, -1, None)
            up = mujoco.mj_ray(model, data, start, _UP, _SEEN, True, -1, met, normal)
            # faces of meshes may be turned either way; what other geoms show of theirs upwards encloses the ray
            is_inside = up >= 0.0 and normal[2] > 0.0 and model.geom_type[met[0]] != mujoco.mjtGeom.mjGEOM_MESH
            if 0.0 <= down <= _HEAD + _MARGIN and not is_inside:
                above_floor += 1
                if _LOWEST <= up <= _HIGHEST:
                    heights.append(float(start[2]) + up)
    return float(np.median(heights)) - _MARGIN if len(heights) > _COVERED * above_floor else None


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
