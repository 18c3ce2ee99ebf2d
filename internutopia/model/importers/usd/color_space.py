"""Colour space: linear RGB, in which USD and MDL write colours, and sRGB, in which MuJoCo shows them.

Values of colours in USD, displayColor and inputs of materials and lights, are linear, with the primaries of Rec. 709
(UsdPreviewSurface specification; `color` of MDL is linear, too). Images are in sRGB unless the file says that they are
raw. MuJoCo's renderer converts neither: what a colour or pixel says is what the picture has, but for the light. So a
linear value is encoded, as the pixels of images are. Products, such as a tint times an image, may be taken on either
side: the sRGB curve is nearly a power.

The curve: IEC 61966-2-1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def encode_srgb(linear: ArrayLike) -> NDArray[np.float64]:
    """Encode linear values as sRGB, both 0 to 1, of any shape; values outside are clipped."""
    values = np.clip(np.asarray(linear, float), 0, 1)
    return np.where(values <= 0.0031308, 12.92 * values, 1.055 * values ** (1 / 2.4) - 0.055)


def is_linear_space(name: str) -> bool:
    """Return True if a USD colour space (`raw`, `sRGB`, `auto`, `lin_rec709`; empty if there is none) is linear."""
    return name == 'raw' or name.startswith('lin')


def decode_srgb(encoded: ArrayLike) -> NDArray[np.float64]:
    """Decode sRGB to linear values, both 0 to 1, of any shape."""
    values = np.asarray(encoded, float)
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
