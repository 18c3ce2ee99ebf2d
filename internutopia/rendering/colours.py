"""Mean colours of a model: of what `plain` images show in place of textures, and of the sky."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.camera import NO_COLOUR


@contextmanager
def coloured(model: mujoco.MjModel, colours: Mapping[str, NDArray[np.float32]]) -> Iterator[None]:
    """Give fields other colours, which physics does not read; the caller holds the lock of the model."""
    kept = {field: getattr(model, field).copy() for field in colours}
    try:
        for field, values in colours.items():
            getattr(model, field)[:] = values
        yield
    finally:
        for field, values in kept.items():
            getattr(model, field)[:] = values


def plain_colours(model: mujoco.MjModel) -> dict[str, NDArray[np.float32]]:
    """Return the colours of materials, and of geoms that have their own, times the mean of their textures."""
    means = np.ones((model.nmat, 4), np.float32)
    roles = [int(mujoco.mjtTextureRole.mjTEXROLE_RGB), int(mujoco.mjtTextureRole.mjTEXROLE_RGBA)]
    for material, textures in enumerate(model.mat_texid[:, roles]):
        for texture in textures[(textures >= 0) & (model.tex_nchannel[textures] >= 3)]:  # OpenGL shows no others
            means[material, :3] *= _mean_of(model, texture) / 255.0
    geoms, own = model.geom_rgba.copy(), (model.geom_rgba != NO_COLOUR).any(axis=1) & (model.geom_matid >= 0)
    geoms[own] *= means[model.geom_matid[own]]
    return {'mat_rgba': model.mat_rgba * means, 'geom_rgba': geoms}


def sky_colour(model: mujoco.MjModel) -> NDArray[np.uint8] | None:
    """Return the mean colour `(3,)` of the sky; None if there is none."""
    skies = np.flatnonzero(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX)
    return _mean_of(model, skies[0]).round().astype(np.uint8) if len(skies) else None


def _mean_of(model: mujoco.MjModel, texture: int) -> NDArray[np.float64]:
    """Return the mean red, green and blue `(3,)` of a texture, 0 to 255."""
    channels = int(model.tex_nchannel[texture])
    begin, count = int(model.tex_adr[texture]), int(model.tex_width[texture]) * int(model.tex_height[texture])
    pixels = model.tex_data[begin : begin + count * channels].reshape(count, channels)
    return np.broadcast_to(pixels[:, :3].mean(axis=0), 3)
