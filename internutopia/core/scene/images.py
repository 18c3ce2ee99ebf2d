"""Images as textures of a spec."""

from __future__ import annotations

import io

import mujoco
import numpy as np
from numpy.typing import NDArray

MAX_TEXTURE = 1024
"""Width and height [pixels] that larger images are scaled down to."""


def decode_image(data: bytes) -> NDArray[np.uint8]:
    """`(height, width, 3)` pixels, the top row first, of an image file in any format that Pillow reads.

    Raises:
        ValueError: It cannot be read.
    """
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data)).convert('RGB')
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(str(error)) from error
    image.thumbnail((MAX_TEXTURE, MAX_TEXTURE))
    return np.asarray(image)


def add_texture(spec: mujoco.MjSpec, name: str, pixels: NDArray[np.uint8]) -> None:
    """Add pixels `(height, width, 3)` to a spec as a texture for meshes."""
    texture = spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, nchannel=3)
    texture.height, texture.width = pixels.shape[:2]
    texture.data = pixels.tobytes()
