"""Depth buffers: from their values to metres and back, and where the sky begins in them."""

from __future__ import annotations

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.camera import FAR, NEAR, Intrinsics

_SKY = 0.7 * FAR  # m: the engine paints the sky on a cylinder around the camera, of this radius and half height


def sky_distance(model: mujoco.MjModel) -> float | None:
    """Return the least distance of sky and haze to the camera [m]; None if there is no sky."""
    if not (model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX).any():
        return None
    begin = max(0.0, 1.0 - model.vis.map.haze)  # of the haze, as a share of the radius
    prism = math.cos(math.pi / model.vis.quality.numslices)  # which is rendered instead of a cylinder
    return 0.999 * _SKY * begin * prism  # single precision is better than that


def depth_value(distance: float, intrinsics: Intrinsics) -> float:
    """Return the greatest depth buffer value of a point this far from the camera [m], anywhere in the image."""
    centre = intrinsics.centre
    aside = math.hypot(abs(centre[0]) + intrinsics.half_width, abs(centre[1]) + intrinsics.half_height)
    if intrinsics.orthographic:
        return (FAR - math.sqrt(max(0.0, distance**2 - aside**2))) / (FAR - NEAR)
    ahead = max(NEAR, distance / math.hypot(1.0, aside))
    return NEAR * (FAR / ahead - 1.0) / (FAR - NEAR)


def metres_of(depth: NDArray[np.float32], orthographic: bool) -> NDArray[np.float64]:
    """Convert depth buffer values (1 at the near plane, 0 at the far) to distances along the viewing direction [m]."""
    value = depth.astype(np.float64)
    if orthographic:
        metres = FAR - value * (FAR - NEAR)
    else:
        metres = NEAR * FAR / (NEAR + value * (FAR - NEAR))
    metres[depth <= 0.0] = np.inf
    return metres
