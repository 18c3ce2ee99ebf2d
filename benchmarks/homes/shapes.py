"""Triangle meshes of simple shapes: boxes, boxes with round edges, turned things, cells of a grid; lengths in metres.

Faces look outwards. More `detail` gives round things more triangles, never other bounds or other parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Surface:
    """A triangle mesh.

    Attributes:
        points: `(n, 3)` [m].
        triangles: `(m, 3)` indices of points, counter-clockwise from outside.
        smooth: whether it is shaded as a curved surface.
    """

    points: Array
    triangles: NDArray[np.int32]
    smooth: bool = False

    @property
    def bounds(self) -> Array:
        """Lowest and highest corner, `(2, 3)` [m]."""
        return np.stack([self.points.min(axis=0), self.points.max(axis=0)])

    def moved(self, offset: ArrayLike) -> Surface:
        """The same at another place; `offset`: `(3,)` [m]."""
        return replace(self, points=self.points + np.asarray(offset, float))

    def turned(self, axes: str) -> Surface:
        """With its axes in another order, which `axes` says by a rotation of `'xyz'`: `'zxy'` lays z along x."""
        return replace(self, points=self.points[:, ['xyz'.index(axis) for axis in axes]])

    def normals(self) -> Array:
        """Unit normals: if it is smooth `(n, 3)` of its points, else `(3 m, 3)` of the corners of its triangles."""
        a, b, c = (self.points[self.triangles[:, k]] for k in range(3))
        across = np.cross(b - a, c - a)
        if not self.smooth:
            return np.repeat(across / np.linalg.norm(across, axis=1, keepdims=True), 3, axis=0)
        total = np.zeros_like(self.points)
        for k in range(3):
            for axis in range(3):
                total[:, axis] += np.bincount(self.triangles[:, k], across[:, axis], len(total))
        return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)

    def coordinates(self) -> NDArray[np.float32]:
        """Texture coordinates of the corners of the triangles, `(3 m, 2)`: one tile per metre, from where they face."""
        corners = self.points[self.triangles]
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        facing = np.argmax(np.abs(across), axis=1)
        kept = np.array([[1, 2], [0, 2], [0, 1]])[facing]
        return np.take_along_axis(corners, kept[:, None, :], axis=2).reshape(-1, 2).astype(np.float32)


def join(*surfaces: Surface) -> Surface:
    """Several pieces as one mesh; they share no points."""
    starts = np.cumsum([0, *(len(surface.points) for surface in surfaces[:-1])])
    return Surface(
        np.concatenate([surface.points for surface in surfaces]),
        np.concatenate([s.triangles + start for s, start in zip(surfaces, starts, strict=True)]).astype(np.int32),
        all(surface.smooth for surface in surfaces),
    )


def cells(planes: Sequence[ArrayLike], solid: NDArray[np.bool_]) -> Surface:
    """The surface of some cells of a grid, whose points neighbours share.

    Args:
        planes: between the cells, along x, y, z [m].
        solid: which cells; one less than the planes along each axis.
    """
    padded = np.pad(solid, 1)
    quads = []
    for axis in range(3):
        for side in (0, 1):
            open_to = ~np.roll(padded, 1 - 2 * side, axis)[1:-1, 1:-1, 1:-1]
            quads.append(cell_faces(np.argwhere(solid & open_to), axis, side))
    return quads_on_grid(planes, np.concatenate(quads))


def cell_faces(where: NDArray[np.int_], axis: int, side: int) -> NDArray[np.int_]:
    """Corners `(n, 4, 3)`, as indices of planes, of one face of `(n, 3)` cells each: the lower or upper of an axis."""
    corners = np.repeat(where[:, None], 4, axis=1)
    corners[..., axis] += side
    corners[..., (axis + 1) % 3] += np.array([0, 1, 1, 0])
    corners[..., (axis + 2) % 3] += np.array([0, 0, 1, 1])
    return corners if side else corners[:, ::-1]


def quads_on_grid(planes: Sequence[ArrayLike], quads: NDArray[np.int_]) -> Surface:
    """A mesh of quads `(n, 4, 3)` whose corners are given as indices of planes; equal corners are one point."""
    along = [np.asarray(values, float) for values in planes]
    flat = np.ravel_multi_index(tuple(np.moveaxis(quads, -1, 0)), tuple(map(len, along)))
    used, index = np.unique(flat, return_inverse=True)
    grid = np.stack(np.meshgrid(*along, indexing='ij'), axis=-1).reshape(-1, 3)
    corners = index.reshape(-1, 4)
    return Surface(grid[used], np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]]).astype(np.int32))


def box(low: Sequence[float], high: Sequence[float]) -> Surface:
    """A box between two corners [m]."""
    cube = _lattice(1)
    return Surface(np.array([low, high], float)[cube.points.astype(int), [0, 1, 2]], cube.triangles)


def rounded_box(low: Sequence[float], high: Sequence[float], radius: float, detail: float = 1.0) -> Surface:
    """A box between two corners whose edges are round, as cushions are [m]."""
    steps = max(2, round(3 * detail))
    half = (np.array(high, float) - low) / 2
    radius = min(radius, 0.9 * half.min())
    corner = radius * (1 - np.cos(np.linspace(0, np.pi / 2, steps + 1)))  # closer together where it bends most
    planes = [np.concatenate([corner - h, (h - corner)[::-1]]) for h in half]
    surface = _lattice(len(planes[0]) - 1)
    on_planes = np.stack(planes, axis=1)[surface.points.astype(int), [0, 1, 2]]
    core = np.clip(on_planes, -(half - radius), half - radius)
    away = on_planes - core
    points = core + radius * away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
    return Surface(points + (np.array(high, float) + low) / 2, surface.triangles, smooth=True)


@lru_cache
def _lattice(count: int) -> Surface:
    """The surface of a cube of so many cells along each side, which are of size 1."""
    planes = np.arange(count + 1)
    return cells(3 * [planes], np.ones(3 * (count,), bool))


def turned_shape(profile: ArrayLike, detail: float = 1.0) -> Surface:
    """A solid of revolution about z; `profile`: `(k, 2)` radius and height [m], from lower to upper pole."""
    radius, height = np.asarray(profile, float).T
    around = 4 * max(3, round(5 * detail))  # a multiple of 4, so that bounds are the same
    angle = np.arange(around) * (2 * np.pi / around)
    rings = [around if r > 0 else 1 for r in radius]
    points = np.concatenate(
        [
            np.column_stack([r * np.cos(angle[:n]), r * np.sin(angle[:n]), np.full(n, z)])
            for r, z, n in zip(radius, height, rings, strict=True)
        ]
    )
    starts = np.cumsum([0, *rings[:-1]])
    rows = np.stack([start + np.arange(around) % n for start, n in zip(starts, rings, strict=True)])
    here, there = rows[:-1], rows[1:]
    quads = np.stack([here, np.roll(here, -1, 1), np.roll(there, -1, 1), there], axis=-1).reshape(-1, 4)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    distinct = (triangles != np.roll(triangles, 1, axis=1)).all(axis=1)  # at the poles every other one is none
    return Surface(points, triangles[distinct].astype(np.int32), smooth=True)


def cylinder(radius: float, low: float, high: float, detail: float = 1.0) -> Surface:
    """An upright cylinder between two heights [m]."""
    return turned_shape([(0, low), (radius, low), (radius, high), (0, high)], detail)


def lampshade(radius: float, low: float, high: float, detail: float = 1.0) -> Surface:
    """A truncated cone open at both ends, between two heights [m], as a thin sheet with two sides."""
    top, sheet = radius * 0.6, 0.004
    return turned_shape(
        [(radius - sheet, low), (radius, low), (top, high), (top - sheet, high), (radius - sheet, low)], detail
    )


def ball(radius: float, detail: float = 1.0) -> Surface:
    """A sphere around the origin [m]."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, max(4, round(8 * detail)) + 1)
    profile = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    profile[[0, -1], 0] = 0
    return turned_shape(profile, detail)


def smooth_profile(corners: ArrayLike, detail: float = 1.0) -> Array:
    """A profile of `turned_shape` with points added between its corners, so that it bends gently, `(k, 2)` [m]."""
    corners = np.asarray(corners, float)
    steps = max(2, round(4 * detail))
    t = np.linspace(0, 1, steps, endpoint=False)[:, None]
    before = np.concatenate([corners[:1], corners[:-1]])
    after = np.concatenate([corners[1:], corners[-1:]])
    slope = (after - before) / 2  # Catmull and Rom
    found = []
    for k in range(len(corners) - 1):
        a, b = corners[k], corners[k + 1]
        found.append(
            (2 * t**3 - 3 * t**2 + 1) * a
            + (t**3 - 2 * t**2 + t) * slope[k]
            + (3 * t**2 - 2 * t**3) * b
            + (t**3 - t**2) * slope[k + 1]
        )
    curve = np.concatenate([*found, corners[-1:]])
    curve[1:-1, 0] = np.maximum(curve[1:-1, 0], 1e-3)
    curve[:, 1] = np.clip(curve[:, 1], corners[:, 1].min(), corners[:, 1].max())  # it would swing below the feet
    return curve
