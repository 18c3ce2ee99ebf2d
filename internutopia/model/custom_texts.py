"""Custom texts of a compiled model, that say something about one of its elements."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco


def custom_texts(model: mujoco.MjModel, tag: str) -> Iterator[tuple[str, str, str]]:
    """Yield prefix, element and data of the texts `<tag><element>`.

    A model that was attached has its prefix, which ends with a slash, before the names of its texts and elements.
    """
    for text in range(model.ntext):
        prefix, tagged, element = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_TEXT, text).partition(tag)
        if tagged and (not prefix or prefix.endswith('/')):
            begin = model.text_adr[text]
            yield prefix, element, model.text_data[begin : begin + model.text_size[text] - 1].decode()  # it ends with 0
