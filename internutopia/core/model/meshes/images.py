"""Images as textures of a spec."""

from __future__ import annotations

import io
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

MAX_TEXTURE = 1024
"""Width and height [pixels] that larger images are scaled down to."""

Pixels = NDArray[np.uint8]


def decode_image(data: bytes, mode: Literal['RGB', 'RGBA'] = 'RGB') -> Pixels:
    """`(height, width, 3 or 4)` pixels, the top row first, of an image file in any format that Pillow reads.

    Raises:
        ValueError: It cannot be read.
    """
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data)).convert(mode)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from error
    image.thumbnail((MAX_TEXTURE, MAX_TEXTURE))
    return np.asarray(image)


def scaled_down(pixels: Pixels) -> Pixels:
    """Pixels `(height, width, n)` that are at most `MAX_TEXTURE` wide and high."""
    largest = max(pixels.shape[:2])
    if largest <= MAX_TEXTURE:
        return pixels
    height, width = (max(1, round(side * MAX_TEXTURE / largest)) for side in pixels.shape[:2])
    return resized(pixels, (width, height))


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Pixels `(height, width)` or `(height, width, n)` at another width and height."""
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize(size))


def add_texture(spec: mujoco.MjSpec, name: str, pixels: Pixels) -> None:
    """Add pixels `(height, width, 3 or 4)` to a spec as a texture for meshes."""
    texture = spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, nchannel=pixels.shape[2])
    texture.height, texture.width = pixels.shape[:2]
    texture.data = pixels.tobytes()
