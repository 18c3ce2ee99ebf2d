"""Convex hulls of points, with few vertices; surfaces that nearly fill their hull, and boxes among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.meshes.surfaces import PREVIOUS, Floats, Ints, Surface, cross, normals_of

HULL_VERTICES = 64
"""Maximum number of vertices of a hull, as in PhysX: the ones that stand out most."""
MAX_CELLS = 20_000_000
"""Maximum number of cells to compare a surface with its hull; one that needs more does not fill it."""


def hull(points: Floats, limit: int = -1) -> Surface:
    """Return the convex hull of points `(n, 3)`, of at most `limit` of them; -1 is all.

    Raises:
        ValueError: The points are in a plane.
    """
    return hulls([points], limit)[0]


def hulls(clouds: Sequence[Floats], limit: int = -1) -> list[Surface]:
    """Return the `hull` of each of several sets of points, the same ones in a fifth of the time."""
    if not clouds:
        return []
    spec = mujoco.MjSpec()
    for number, points in enumerate(clouds):
        low, size = points.min(axis=0), np.ptp(points, axis=0).max()
        name = f'mesh_{number}'
        spec.add_mesh(
            name=name,
            uservert=((points - low) / size).ravel(),  # MuJoCo refuses small meshes
            maxhullvert=limit,
            inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX,
        )
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name)
    model = spec.compile()
    found: list[Surface] = []
    for number, points in enumerate(clouds):
        used, index = np.unique(hull_faces(model, number), return_inverse=True)
        found.append(Surface(points[used], index.reshape(-1, 3).astype(np.int64)))
    return found


def hull_faces(model: mujoco.MjModel, mesh: int) -> NDArray[np.int32]:
    """Return vertices `(m, 3)` of the faces of a mesh's convex hull, counted within it, from its graph in MuJoCo."""
    graph = model.mesh_graph[model.mesh_graphadr[mesh] :]
    vertices, faces = graph[:2]
    first = 2 + 3 * vertices + 3 * faces  # skip addresses and ids of vertices, and the edges
    return graph[first : first + 3 * faces].reshape(-1, 3)


def fills_hull(surface: Surface, around: Surface, slack: float) -> bool:
    """Return True if no point of a surface's convex hull is far from the surface.

    Both are compared in cells of `slack` [m]: a point of the hull must have one of the surface in its cell or one
    next to it, so it may be as far as 1 to 3.5 times `slack` from it, and what is open wider than 7 times stays open.
    """
    low = around.vertices.min(axis=0)
    shape = tuple(np.ceil(around.extent / slack).astype(int) + 3)
    if np.prod(shape, dtype=float) > MAX_CELLS:
        return False
    filled = np.zeros(shape, bool)
    inner = np.floor((samples(surface.vertices[surface.faces], slack) - low) / slack).astype(int) + 1
    filled[tuple(np.clip(inner, 0, np.array(shape) - 1).T)] = True
    for axis in range(3):
        near = filled.copy()
        near[_but(axis, slice(1, None))] |= filled[_but(axis, slice(None, -1))]
        near[_but(axis, slice(None, -1))] |= filled[_but(axis, slice(1, None))]
        filled = near
    outer = np.floor((samples(around.vertices[around.faces], slack) - low) / slack).astype(int) + 1
    return bool(filled[tuple(np.clip(outer, 0, np.array(shape) - 1).T)].all())


def box_around(around: Surface, slack: float) -> tuple[Floats, Floats] | None:
    """Return axes `(3, 3)`, one a column, of a box around a convex surface, and its corners `(8, 3)` along them.

    The box lies along the two largest faces that are square to each other, and exceeds the surface by at most `slack`
    [m]; None if it is larger than that.
    """
    axes = dominant_axes(around)
    if axes is None:
        return None
    spread = around.vertices @ axes
    corners = box_corners(spread.min(axis=0), spread.max(axis=0))
    gaps = np.linalg.norm(corners[:, None] - spread[None], axis=2).min(axis=1)
    return (axes, corners) if gaps.max() <= slack + 1e-5 * np.ptp(spread, axis=0).max() else None


def box_corners(low: Floats, high: Floats) -> Floats:
    """Return the eight corners `(8, 3)` of a box."""
    return np.stack(np.meshgrid(*np.stack([low, high], axis=1), indexing='ij'), axis=-1).reshape(-1, 3)


def dominant_axes(surface: Surface) -> Floats | None:
    """Return right-handed axes `(3, 3)`, one a column, normal to the largest face and the largest square to it.

    None where no face is square to the largest one.
    """
    normals, areas = normals_of(surface.vertices[surface.faces])
    first = normals[np.argmax(areas)]
    areas = np.where(normals.any(axis=1) & (np.abs(normals @ first) < _SQUARE), areas, 0.0)
    if areas.max() == 0:
        return None
    second = normals[np.argmax(areas)]
    second = second - (second @ first) * first
    second /= np.linalg.norm(second)
    axes = np.stack([first, second, cross(first, second)], axis=1)
    straight = np.abs(axes).max(axis=0) > 1 - _SQUARE**2
    return np.eye(3) if straight.all() else axes


_SQUARE = 1e-3  # cosine of an angle that counts as a right one


def _but(axis: int, part: slice) -> tuple[slice, ...]:
    """Return an index that takes all but along an axis."""
    return tuple(part if i == axis else slice(None) for i in range(3))


def samples(triangles: Floats, spacing: float) -> Floats:
    """Return points `(k, 3)` all over triangles `(m, 3, 3)`, on a grid of at most `spacing`."""
    counts = _steps(triangles, spacing)
    found = []
    for count in np.unique(counts):
        weights = _weights(*np.triu_indices(count + 1), count)
        found.append((weights @ triangles[counts == count]).reshape(-1, 3))
    return np.concatenate(found)


@dataclass(frozen=True)
class Blocks:
    """The points of `samples` in blocks, which can be classified without a test of each point.

    Attributes:
        triangles: `(m, 3, 3)`.
        steps: `(m,)` of the grid on each triangle along a side.
        ends: `(k, 2, 2)` the least and the greatest index of a block along both sides of its triangle.
        owners: `(k,)` the triangle of each block.
    """

    triangles: Floats
    steps: Ints
    ends: Ints
    owners: Ints

    @classmethod
    def over(cls, triangles: Floats, spacing: float) -> Blocks:
        """Return a block for each triangle."""
        steps = _steps(triangles, spacing)
        ends = np.zeros((len(steps), 2, 2), np.int64)
        ends[:, 1] = steps[:, None]
        return cls(triangles, steps, ends, np.arange(len(steps)))

    def corners(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Return corners `(k, 4, 3)` of the blocks, around all other points; `(k, 4)`: True for samples."""
        i, j = self.ends[:, [0, 0, 1, 1], 0], self.ends[:, [0, 1, 0, 1], 1]
        weights = _weights(i, j, self.steps[self.owners, None])
        return weights @ self.triangles[self.owners], i <= j

    def halves(self, chosen: NDArray[np.bool_]) -> Blocks:
        """Return some of the blocks `(k,)` cut in two along their longer side; without those of one point."""
        chosen = chosen & (self.ends[:, 0] < self.ends[:, 1]).any(axis=1)
        ends, owners = self.ends[chosen], self.owners[chosen]
        rows, side = np.arange(len(ends)), np.argmax(ends[:, 1] - ends[:, 0], axis=1)
        middle = ends[rows, :, side].sum(axis=1) // 2
        low, high = ends.copy(), ends.copy()
        low[rows, 1, side], high[rows, 0, side] = middle, middle + 1
        ends, owners = np.concatenate([low, high]), np.concatenate([owners, owners])
        on = ends[:, 0, 0] <= ends[:, 1, 1]
        return Blocks(self.triangles, self.steps, ends[on], owners[on])


def _steps(triangles: Floats, spacing: float) -> Ints:
    """Return the number `(m,)` of steps of at most `spacing` on the longest side of each triangle."""
    sides = np.linalg.norm(triangles - triangles[:, PREVIOUS], axis=2).max(axis=1)
    return np.maximum(np.ceil(sides / spacing), 1).astype(np.int64)


def _weights(i: Ints, j: Ints, steps: int | Ints) -> Floats:
    """Return `(..., 3)` shares of a triangle's corners in the points of a grid on it, `0 <= i <= j <= steps`."""
    return np.stack([i, j - i, steps - j], axis=-1) / np.asarray(steps)[..., None]
