"""Surface: the look of a material, in whatever format it is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from internutopia.model.importers.usd.color_space import encode_srgb
from internutopia.model.importers.usd.textures import Texture

GLASS_OPACITY = 0.3
"""Opacity of glass without a value of its own."""
_GLOW = 0.6  # emission of what glows most; lights add to it


@dataclass(frozen=True)
class Appearance:
    """A surface.

    `color` is linear RGB, None if the material does not say. It multiplies `texture`, if there is one.
    """

    color: tuple[float, ...] | None = None
    opacity: float = 1.0
    roughness: float = 0.5
    metallic: float = 0.0
    emission: float = 0.0
    texture: Texture | None = None
    warnings: tuple[str, ...] = ()
    """Other inputs of the material, which are not shown."""
    missing_images: tuple[str, ...] = ()
    """Images that do not exist; without them it is shown in one colour."""
    missing_mdl: str = ''
    """Missing `.mdl` file that would define the look."""


def emission_of(glow: ArrayLike) -> float:
    """Return the emission of a surface, from the linear colour in which it glows."""
    return _GLOW * float(encode_srgb(np.max(glow)))
