"""Markers: balls and arrows in pictures only, such as goals and commanded velocities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import mujoco

Floats = NDArray[np.float64]
Colour = tuple[float, float, float, float]

_LEVEL = np.eye(3).ravel()


@dataclass(frozen=True)
class Marker:
    """A ball, or an arrow if it has a `tip`.

    `position` and `tip` `(3,)` [m] are in the env frame, `radius` [m] is that of the ball or of the arrow's shaft,
    `colour` is red, green, blue and opacity, 0 to 1.
    """

    position: Floats
    radius: float
    colour: Colour
    tip: Floats | None = None


def add_markers(scene: mujoco.MjvScene, markers: Sequence[Marker]) -> None:
    """Append markers to a scene, as far as there is room; pictures of labels do not show them."""
    import mujoco  # here: descriptions of pictures do without

    for marker in markers[: scene.maxgeom - scene.ngeom]:
        geom = scene.geoms[scene.ngeom]
        kind = mujoco.mjtGeom.mjGEOM_SPHERE if marker.tip is None else mujoco.mjtGeom.mjGEOM_ARROW
        size = np.full(3, marker.radius)
        colour = np.array(marker.colour, np.float32)
        mujoco.mjv_initGeom(geom, kind, size, np.asarray(marker.position, np.float64), _LEVEL, colour)
        if marker.tip is not None:
            mujoco.mjv_connector(geom, kind, marker.radius, marker.position, marker.tip)
        geom.segid = -1
        scene.ngeom += 1
