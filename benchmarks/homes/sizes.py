"""Sizes of homes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SizeName = Literal['home', 'small']


@dataclass(frozen=True)
class HomeSize:
    """Number of things in a home.

    Attributes:
        extent: width and depth of all rooms together [m].
        rooms: how many.
        shells: how many of them have sheets for walls.
        windows: of a room, at most.
        models, files: prims that are models, and files that they refer to.
        meshes: with points.
        triangles: of all models, about.
        materials, textures: of different appearance, exactly.
        pixels: width and height of a texture.
        furniture: pieces on the floor, at most.
        variants: designs of a kind of furniture, at most.
        bookcases: one design each, and as many books as it takes to have exactly so many meshes.
    """

    extent: tuple[float, float]
    rooms: int
    shells: int
    windows: int
    models: int
    files: int
    meshes: int
    triangles: int
    materials: int
    textures: int
    pixels: int
    furniture: int
    variants: int
    bookcases: int


SIZES: dict[SizeName, HomeSize] = {
    'home': HomeSize((16.0, 12.0), 8, 3, 2, 500, 200, 2700, 1_000_000, 300, 100, 512, 125, 4, 12),
    'small': HomeSize((8.5, 6.5), 3, 1, 1, 40, 28, 200, 60_000, 40, 8, 64, 15, 1, 1),
}
