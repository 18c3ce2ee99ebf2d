"""Images as textures of a spec, and those that MuJoCo reads itself."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Literal

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.model.asset_files import check_bound

MAX_TEXTURE = 1024
"""Width and height [pixels] that larger images are scaled down to."""

Pixels = NDArray[np.uint8]

_FOREIGN = ('EPS', 'WMF')  # for which Pillow starts other programs
_PNG = b'\x89PNG\r\n\x1a\n'
_KTX = b'\xabKTX 20\xbb'
_LEVELS = 32  # of each channel in the palette
_PALETTE_SHAPE = (128, 256)
_PNG_PIXEL = 8  # bytes that a pixel has at most: four channels of 16 bits
_MOST_INFLATED = 1032  # times that zlib data are longer than compressed, at most
_HARMLESS = 2**28  # bytes that MuJoCo may well inflate
_BLOCK = 2**20  # bytes


def decode_image(data: bytes, mode: Literal['RGB', 'RGBA'] = 'RGB') -> Pixels:
    """Return `(height, width, 3 or 4)` pixels, the top row first, of a file in a format that Pillow reads itself.

    Raises:
        ValueError: It cannot be read, or has too many pixels.
    """
    from PIL import Image, UnidentifiedImageError

    if data.startswith(_KTX):
        raise ValueError('KTX2 images are not read; `gltf-transform ktxdecompress in.glb out.glb` makes them PNG')
    try:
        image = Image.open(io.BytesIO(data))
        if image.format in _FOREIGN:
            raise ValueError(f'images of format {image.format} are not read')
        check_bound('image', 'pixels', image.width * image.height, 'pixels')
        image = image.convert(mode)
    except UnidentifiedImageError:
        raise ValueError('not an image of a known format') from None
    except Exception as error:  # its readers raise errors of any type
        raise ValueError(str(error) or type(error).__name__) from error
    image.thumbnail((MAX_TEXTURE, MAX_TEXTURE))
    return np.asarray(image)


def encode_srgb(linear: ArrayLike) -> NDArray[np.float64]:
    """Encode linear values as sRGB, both 0 to 1, of any shape; values outside are clipped."""
    values = np.clip(np.asarray(linear, float), 0, 1)
    return np.where(values <= 0.0031308, 12.92 * values, 1.055 * values ** (1 / 2.4) - 0.055)


def decode_srgb(encoded: ArrayLike) -> NDArray[np.float64]:
    """Decode sRGB to linear values, both 0 to 1, of any shape."""
    values = np.asarray(encoded, float)
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def check_png(file: Path) -> None:
    """Raise ValueError, naming the file, for a PNG of too many pixels, or with more data than pixels.

    MuJoCo's decoder inflates whatever there is: a file of some megabytes becomes gigabytes. Other formats pass.
    """
    with file.open('rb') as content:
        if content.read(len(_PNG)) != _PNG:
            return
        pixels, parts = 0, list[tuple[int, int]]()  # places and lengths of the compressed data
        while len(head := content.read(8)) == 8:
            length, kind, place = int.from_bytes(head[:4]), head[4:], content.tell()
            if kind == b'IHDR':
                width, height = (int.from_bytes(content.read(4)) for _ in range(2))
                check_bound(file, f'pixels ({width} x {height})', pixels := width * height, 'pixels')
            elif kind == b'IDAT':
                parts.append((place, length))
            content.seek(place + length + 4)  # behind the checksum
        if sum(length for _, length in parts) * _MOST_INFLATED > _HARMLESS:
            _check_inflated(file, content, parts, max(pixels * 2 * _PNG_PIXEL, _HARMLESS))


def _check_inflated(file: Path, content: BinaryIO, parts: Iterable[tuple[int, int]], most: int) -> None:
    inflater, size = zlib.decompressobj(), 0
    for place, length in parts:
        content.seek(place)
        data = content.read(length)
        while data and not inflater.eof:
            size += len(inflater.decompress(data, _BLOCK))
            data = inflater.unconsumed_tail
            if size > most:
                raise ValueError(f'{file}: the compressed image has more data than pixels')


def scaled_down(pixels: Pixels) -> Pixels:
    """Return pixels `(height, width, n)` that are at most `MAX_TEXTURE` wide and high."""
    largest = max(pixels.shape[:2])
    if largest <= MAX_TEXTURE:
        return pixels
    height, width = (max(1, round(side * MAX_TEXTURE / largest)) for side in pixels.shape[:2])
    return resized(pixels, (width, height))


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return pixels `(height, width)` or `(height, width, n)` at another width and height."""
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize(size))


def palette() -> Pixels:
    """Return an image `(128, 256, 3)` of all colours, in 32 steps of red, green and blue."""
    levels = np.rint(np.linspace(0, 255, _LEVELS)).astype(np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels, indexing='ij'), axis=-1).reshape(*_PALETTE_SHAPE, 3)


def places_on_palette(colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return places `(n, 2)` on the palette, counted from its top left, of sRGB colours `(n, 3)` from 0 to 1."""
    number = np.rint(np.clip(colours, 0, 1) * (_LEVELS - 1)).astype(int) @ (_LEVELS**2, _LEVELS, 1)
    row, column = np.divmod(number, _PALETTE_SHAPE[1])
    return (np.column_stack([column, row]) + 0.5) / _PALETTE_SHAPE[::-1]


def add_texture(
    spec: mujoco.MjSpec, name: str, pixels: Pixels, kind: mujoco.mjtTexture = mujoco.mjtTexture.mjTEXTURE_2D
) -> None:
    """Add pixels `(height, width, 3 or 4)` to a spec as a texture; of a cube, its six sides below each other."""
    texture = spec.add_texture(name=name, type=kind, nchannel=pixels.shape[2])
    texture.height, texture.width = pixels.shape[:2]
    texture.data = pixels.tobytes()
