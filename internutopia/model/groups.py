"""Groups of geoms and sites, which renderers show or leave out; sites that mark frames."""

from __future__ import annotations

import mujoco
from numpy.typing import ArrayLike

BOTH_GROUP, VISUAL_GROUP, COLLIDER_GROUP = 0, 2, 3
"""Groups of geoms that are seen and collide, are only seen, and only collide; from the last one on nothing shows."""
FRAME_GROUP = 5
"""Group of sites that mark frames; they are never shown."""


HINGE_ARM = 0.1
"""Distance [m] between the two points that hold the axis of a hinge."""


def add_frame_site(body: mujoco.MjsBody, name: str, position: ArrayLike, quat: ArrayLike) -> None:
    """Add a site that marks a frame on a body; it is invisible."""
    body.add_site(name=name, pos=position, quat=quat, group=FRAME_GROUP, size=[0.01, 0.01, 0.01])
