"""Conventions in models: groups of geoms and sites, which renderers show or not; frames; texts about elements."""

from __future__ import annotations

from collections.abc import Iterator

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


def custom_texts(model: mujoco.MjModel, tag: str) -> Iterator[tuple[str, str, str]]:
    """Yield prefix, element and data of the texts `<tag><element>` of a compiled model.

    A model that was attached has its prefix, which ends with a slash, before the names of its texts and elements.
    """
    for text in range(model.ntext):
        prefix, tagged, element = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_TEXT, text).partition(tag)
        if tagged and (not prefix or prefix.endswith('/')):
            begin = model.text_adr[text]
            yield prefix, element, model.text_data[begin : begin + model.text_size[text] - 1].decode()  # it ends with 0
