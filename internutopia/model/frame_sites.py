"""Frame sites: marks on bodies that joints made of equality constraints connect."""

from __future__ import annotations

import mujoco
from numpy.typing import ArrayLike

from internutopia.model.groups import FRAME_GROUP

HINGE_ARM = 0.1
"""Distance [m] between the two points that hold the axis of a hinge."""


def add_frame_site(body: mujoco.MjsBody, name: str, position: ArrayLike, quat: ArrayLike) -> None:
    """Add a site that marks a frame on a body; it is invisible."""
    body.add_site(name=name, pos=position, quat=quat, group=FRAME_GROUP, size=[0.01, 0.01, 0.01])
