"""Appearance of surfaces, in whatever format their materials are written: colours, images and their layout.

MuJoCo repeats textures in all directions. All other USD settings are baked into the pixels: coordinates beyond an image
that is clamped, mirrored or black there get an image as large as they reach, and opacity is a fourth channel.

Values of colours in USD, displayColor and inputs of materials and lights, are linear, with the primaries of Rec. 709
(UsdPreviewSurface specification; `color` of MDL is linear, too). Images are in sRGB unless the file marks them as
raw. MuJoCo's renderer converts neither: the image has the value of a colour or pixel, except for the light. So a
linear value is encoded, as the pixels of images are. Products, such as a tint times an image, may be taken on either
side: the sRGB curve (IEC 61966-2-1) is nearly a power.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.model.importers.as_usd.gltf import EMBEDDED_IMAGE, image_bytes
from internutopia.model.importers.transforms import Array
from internutopia.model.meshes.images import decode_image, encode_srgb, resized, scaled_down

if TYPE_CHECKING:
    from pxr import Sdf

Layout = tuple[tuple[float, float, float], tuple[float, float, float]]
Pixels = NDArray[np.uint8]
Tiles = tuple[tuple[int, int], tuple[int, int]]
"""Range of the repetitions of an image along u and v in a texture: from, up to."""
ONE_TILE: Tiles = ((0, 1), (0, 1))
_IDENTITY: Layout = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
_PADDING: dict[str, Any] = {'clamp': 'edge', 'mirror': 'symmetric', 'black': 'constant'}  # modes of `np.pad`
_SLACK = 1e-3  # of an image, that coordinates may stick out of it
_MOST_TILES = 8  # that a texture is extended to along an axis
GLASS_OPACITY = 0.3
"""Opacity of glass without its own value."""
_GLOW = 0.6  # emission of what glows most; lights add to it


def is_linear_space(name: str) -> bool:
    """Return True if a USD colour space (`raw`, `sRGB`, `auto`, `lin_rec709`; empty if there is none) is linear."""
    return name == 'raw' or name.startswith('lin')


_ENCODED = np.round(255 * encode_srgb(np.arange(256) / 255)).astype(np.uint8)  # by linear value


@dataclass(frozen=True)
class Texture:
    """An image and how it lies on a surface.

    `file` is the resolved path of the image; empty: plain white. Its pixels are in sRGB, unless it `is_linear`. It is
    laid out by the primvar `coordinates` (empty: the usual one) after these have been mapped by the matrix `layout`
    `(2, 3)`. `wrap`: the modes beyond its left and right, and beyond its top and bottom. `alpha` is the path of the
    image whose channel `channel` is opacity (empty: opaque); with a `threshold`, opacity below it is none, from it on
    full.
    """

    file: str = ''
    is_linear: bool = False
    coordinates: str = ''
    layout: Layout = _IDENTITY
    wrap: tuple[str, str] = ('repeat', 'repeat')
    alpha: str = ''
    channel: int = 3
    threshold: float = 0.0

    @property
    def files(self) -> set[str]:
        """Images that it is made of."""
        return {file for file in (self.file, self.alpha) if file}

    def pixels(self, tiles: Tiles, read: Callable[[str], Pixels]) -> Pixels:
        """Read images by `read` as `(height, width, 3 or 4)` sRGB pixels, the top row first, or raise ValueError."""
        image = read(self.file)[..., :3] if self.file else np.full((1, 1, 3), 255, np.uint8)
        if self.is_linear:
            image = _ENCODED[image]
        if self.alpha:
            image = _with_alpha(image, read(self.alpha)[..., self.channel], self.threshold)
        (left, right), (bottom, top) = tiles
        height, width = image.shape[:2]
        sides = [(0, 0), (-left * width, (right - 1) * width), (0, 0)]
        image = np.pad(image, sides, mode=_PADDING.get(self.wrap[0], 'wrap'))
        ends = [((top - 1) * height, -bottom * height), (0, 0), (0, 0)]
        return scaled_down(np.pad(image, ends, mode=_PADDING.get(self.wrap[1], 'wrap')))

    def fit(self, coordinates: Array) -> tuple[Tiles, Array]:
        """Return the tiles needed for primvar values `(n, 2)`, and the coordinates on all of these, from below."""
        columns = [
            _mapped(coordinates @ row[:2] + row[2], mode)
            for row, mode in zip(np.array(self.layout), self.wrap, strict=True)
        ]
        (u, across), (v, along) = columns
        return (u, v), np.stack([across, along], axis=1)


def read_image(file: str) -> Pixels:
    """Read `(height, width, 4)` pixels, the top row first, of an image that may lie in a USDZ package or glTF file.

    Raises:
        ValueError: It cannot be read.
    """
    from pxr import Ar

    if EMBEDDED_IMAGE.fullmatch(file):
        return decode_image(image_bytes(file), 'RGBA')
    asset = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(file))
    if not asset:
        raise ValueError('no such file')
    return decode_image(bytes(asset.GetBuffer() or b''), 'RGBA')


def image_file(asset: Sdf.AssetPath) -> str:
    """Return the resolved path of an image, empty if there is none; of an image in tiles (UDIM), the first one.

    Of a file it is the one without links, by which models share images.
    """
    if EMBEDDED_IMAGE.fullmatch(asset.path):
        return asset.path
    if '<UDIM>' not in asset.path:
        return os.path.realpath(asset.resolvedPath) if os.path.exists(asset.resolvedPath) else str(asset.resolvedPath)
    from pxr import UsdShade

    tiles = UsdShade.UdimUtils.ResolveUdimTilePaths(asset.path, None)
    return str(tiles[0][0]) if tiles else ''


def layout(scale: Any, degrees: float, translation: Any) -> Layout:
    """Return texture coordinates scaled, turned [deg, counterclockwise] and moved, in that order."""
    sx, sy = (float(s) for s in scale or (1.0, 1.0))
    tx, ty = (float(t) for t in translation or (0.0, 0.0))
    angle = np.radians(degrees)
    cos, sin = float(np.cos(angle)), float(np.sin(angle))
    return (cos * sx, -sin * sy, tx), (sin * sx, cos * sy, ty)


def _mapped(coordinates: Array, mode: str) -> tuple[tuple[int, int], Array]:
    """Return the range of repetitions of the image needed along an axis, and the coordinates on all of these."""
    if mode not in _PADDING or (coordinates.min(initial=0) > -_SLACK and coordinates.max(initial=1) < 1 + _SLACK):
        return (0, 1), coordinates
    if mode == 'mirror':  # an image and its mirror image repeat
        return (0, 2), coordinates / 2
    low = max(min(int(np.floor(coordinates.min() + _SLACK)), 0), -_MOST_TILES)
    high = min(max(int(np.ceil(coordinates.max() - _SLACK)), 1), _MOST_TILES)
    return (low, high), (np.clip(coordinates, low, high) - low) / (high - low)


def _with_alpha(image: Pixels, alpha: NDArray[np.uint8], threshold: float) -> Pixels:
    """Return an image with a channel of opacity, which may be larger or smaller."""
    height, width = np.maximum(image.shape[:2], alpha.shape)
    if threshold > 0:
        alpha = np.where(alpha >= threshold * 255, np.uint8(255), np.uint8(0))
    if alpha.min() == 255:
        return image
    return np.dstack([resized(image, (width, height)), resized(alpha, (width, height))])


@dataclass(frozen=True)
class Appearance:
    """A surface.

    `color` is linear RGB, None if the material has none. It multiplies `texture`, if there is one.
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
    """Missing `.mdl` file that would define the appearance."""


def emission_of(glow: ArrayLike) -> float:
    """Return the emission of a surface, from the linear colour in which it glows."""
    return _GLOW * float(encode_srgb(np.max(glow)))
