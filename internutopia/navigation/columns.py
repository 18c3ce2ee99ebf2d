"""Solids, the collision geometry of a model, the spans of a grid's columns that they fill, and the gaps in between.

Everything in MuJoCo collides as something convex, but height fields. A convex solid is the intersection of half-spaces;
round ones get tangential planes, which makes them larger by less than 1.5 % of their radius. Lengths in metres,
positions in the frame of the model's world.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import mujoco
import numpy as np
from mujoco import mjtGeom
from numpy.typing import NDArray

from internutopia.navigation.agent import Agent

Array = NDArray[np.float64]

_STEEP = float(np.cos(np.pi / 4))  # upward component of the normal below which nothing stands
_LEVEL = 1.0 - 1e-6
_HALF = 0.5 - 1e-6  # of a column: what ends at its border is not in it
_HEIGHT_FIELD_STEEP = np.sqrt(2.0)  # rise of a column from corner to corner, in widths, where that is 45 degrees
_BOX = np.vstack([np.eye(3), -np.eye(3)])
Ints = NDArray[np.intp]


def _directions(rings: int, sides: int) -> Array:
    """Return unit vectors `(n, 3)`: both poles and rings between them."""
    polar = np.linspace(0.0, np.pi, rings + 2)[1:-1, None]
    around = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)[None]
    ring = np.stack(np.broadcast_arrays(np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)))
    return np.vstack([ring.reshape(3, -1).T, [0, 0, 1], [0, 0, -1]])


_BALL = _directions(rings=15, sides=24)
_CYLINDER = _directions(rings=1, sides=32)


@dataclass(frozen=True)
class Spans:
    """Spans of columns that a solid fills.

    Attributes:
        inside: `(nx, ny)` whether it fills anything of a column.
        low, high: `(nx, ny)` from where to where [m].
        steep: `(nx, ny)` whether its top is too steep to stand on (45 degrees).
    """

    inside: NDArray[np.bool_]
    low: Array
    high: Array
    steep: NDArray[np.bool_]


class Solid(Protocol):
    """Something that is collided with; `low` and `high` `(3,)` are the corners of a box around it [m]."""

    @property
    def low(self) -> Array: ...  # noqa: D102
    @property
    def high(self) -> Array: ...  # noqa: D102

    def spans(self, x: Array, y: Array, width: float) -> Spans:
        """Return what it fills of square columns around `(x, y)` of some width [m]; in doubt, more rather than less."""
        ...


@dataclass(frozen=True)
class ConvexSolid:
    """The points `p` with `normals @ p <= offsets`.

    Attributes:
        normals: `(k, 3)` outwards, unit vectors.
        offsets: `(k,)` [m].
        low, high: `(3,)` corners of its box [m].
    """

    normals: Array
    offsets: Array
    low: Array
    high: Array

    def spans(self, x: Array, y: Array, width: float) -> Spans:
        """Return what it fills of columns, see `Solid`: planes are moved outwards by as far as a column reaches."""
        offsets = self.offsets + np.abs(self.normals[:, :2]).sum(axis=1) * width * _HALF
        up = self.normals[:, 2]
        rest = offsets[:, None, None] - self.normals[:, :1, None] * x[:, None] - self.normals[:, 1:2, None] * y
        upper, lower, side = up > 1e-6, up < -1e-6, np.abs(up) <= 1e-6
        shape = len(x), len(y)
        inside = (rest[side] >= 0.0).all(axis=0)
        low, high, steep = np.full(shape, self.low[2]), np.full(shape, self.high[2]), np.zeros(shape, bool)
        if upper.any():
            tops = rest[upper] / up[upper, None, None]
            high = np.minimum(high, tops.min(axis=0))
            if (up[upper] < _STEEP).any():
                steep = up[upper][tops.argmin(axis=0)] < _STEEP
        if lower.any():
            low = np.maximum(low, (rest[lower] / up[lower, None, None]).max(axis=0))
        return Spans(inside & (low <= high), low, high, steep)


@dataclass(frozen=True)
class HeightField:
    """A height field that is turned about the vertical axis at most.

    Attributes:
        heights: `(rows, columns)` [m], above its base; rows along its y axis.
        half: `(2,)` half of its width and depth [m].
        position: `(3,)` of its middle [m].
        axes: `(2, 2)` its x and y axes seen from above, as columns.
        bottom: height of its lower side [m].
    """

    heights: Array
    half: Array
    position: Array
    axes: Array
    bottom: float

    @property
    def low(self) -> Array:
        """Lower corner of its box."""
        return np.append(self.position[:2] - np.abs(self.axes) @ self.half, self.bottom)

    @property
    def high(self) -> Array:
        """Upper corner of its box."""
        return np.append(self.position[:2] + np.abs(self.axes) @ self.half, self.position[2] + self.heights.max())

    def spans(self, x: Array, y: Array, width: float) -> Spans:
        """Return what it fills of columns, see `Solid`: up to the highest of a column's corners."""
        edges = (np.append(v - width / 2.0, v[-1] + width / 2.0) for v in (x, y))
        corner = self._height(*edges)
        corners = np.stack([corner[:-1, :-1], corner[1:, :-1], corner[:-1, 1:], corner[1:, 1:]])
        high = corners.max(axis=0)
        place = np.stack(np.meshgrid(x, y, indexing='ij'), axis=-1) - self.position[:2]
        inside = np.asarray((np.abs(place @ self.axes) <= self.half).all(axis=-1))
        steep = high - corners.min(axis=0) > _HEIGHT_FIELD_STEEP * width
        return Spans(inside, np.full_like(high, self.bottom), high, steep)

    def _height(self, x: Array, y: Array) -> Array:
        place = np.stack(np.meshgrid(x, y, indexing='ij'), axis=-1) - self.position[:2]
        last = np.array(self.heights.shape[::-1]) - 1
        at = np.clip((place @ self.axes / self.half + 1.0) / 2.0 * last, 0.0, last)
        cell = np.minimum(at.astype(int), last - 1)
        u, v = np.moveaxis(at - cell, -1, 0)
        i, j = np.moveaxis(cell, -1, 0)
        h = self.heights
        near, far = h[j, i] * (1 - u) + h[j, i + 1] * u, h[j + 1, i] * (1 - u) + h[j + 1, i + 1] * u
        return self.position[2] + near * (1 - v) + far * v


def solids_of(model: mujoco.MjModel, data: mujoco.MjData, geoms: Iterable[int]) -> Iterator[Solid]:
    """Return the solids of some geoms, in the poses of `data` (positions computed)."""
    hulls: dict[int, tuple[Array, Array]] = {}
    for geom in geoms:
        place, axes = data.geom_xpos[geom], data.geom_xmat[geom].reshape(3, 3)
        size, kind = model.geom_size[geom], mjtGeom(model.geom_type[geom])
        if kind == mjtGeom.mjGEOM_HFIELD and axes[2, 2] > _LEVEL:
            yield _height_field(model, int(model.geom_dataid[geom]), place, axes)
            continue
        if kind == mjtGeom.mjGEOM_PLANE:
            normal = axes[:, 2].copy()
            reach = np.full(3, np.inf)
            top = reach if normal[2] < _LEVEL else np.array([np.inf, np.inf, place[2]])
            yield ConvexSolid(normal[None], np.array([normal @ place]), -reach, top)
            continue
        centre = np.zeros(3)
        if kind == mjtGeom.mjGEOM_MESH:
            mesh = int(model.geom_dataid[geom])
            if mesh not in hulls:
                hulls[mesh] = _hull(model, mesh)
            normals, offsets = hulls[mesh]
        elif kind in (mjtGeom.mjGEOM_SPHERE, mjtGeom.mjGEOM_CAPSULE):
            half = size[1] if kind == mjtGeom.mjGEOM_CAPSULE else 0.0
            normals, offsets = _BALL, size[0] + half * np.abs(_BALL[:, 2])
        elif kind == mjtGeom.mjGEOM_ELLIPSOID:
            normals, offsets = _BALL, np.linalg.norm(_BALL * size, axis=1)
        elif kind == mjtGeom.mjGEOM_CYLINDER:
            level = np.linalg.norm(_CYLINDER[:, :2], axis=1)
            normals, offsets = _CYLINDER, size[0] * level + size[1] * np.abs(_CYLINDER[:, 2])
        elif kind == mjtGeom.mjGEOM_BOX:
            normals, offsets = _BOX, np.tile(size, 2)
        else:  # its bounding box
            centre = model.geom_aabb[geom, :3]
            normals, offsets = _BOX, np.tile(model.geom_aabb[geom, 3:], 2)
        middle = place + axes @ model.geom_aabb[geom, :3]
        reach = np.abs(axes) @ model.geom_aabb[geom, 3:]
        turned = normals @ axes.T
        yield ConvexSolid(turned, offsets + turned @ (place + axes @ centre), middle - reach, middle + reach)


def _hull(model: mujoco.MjModel, mesh: int) -> tuple[Array, Array]:
    """Return normals and offsets of the faces of a mesh's convex hull, in its own frame."""
    first, count = int(model.mesh_polyadr[mesh]), int(model.mesh_polynum[mesh])
    normals = model.mesh_polynormal[first : first + count].astype(float)
    start, size = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = model.mesh_vert[start : start + size].astype(float)
    return normals, (normals @ vertices.T).max(axis=1)


def _height_field(model: mujoco.MjModel, field: int, place: Array, axes: Array) -> HeightField:
    rows, columns, first = int(model.hfield_nrow[field]), int(model.hfield_ncol[field]), int(model.hfield_adr[field])
    width, depth, top, base = model.hfield_size[field]
    heights = model.hfield_data[first : first + rows * columns].reshape(rows, columns).astype(float) * top
    return HeightField(heights, np.array([width, depth]), place.copy(), axes[:2, :2].copy(), float(place[2] - base))


@dataclass(frozen=True)
class Grid:
    """Square columns, with empty ones around so that none that is filled has neighbours beyond the grid.

    Attributes:
        spacing: width of a column [m].
        first, last: `(2,)` the first and the last one that may be filled: `(i, j)` is the square from
            `(i, j) * spacing` to `(i + 1, j + 1) * spacing`.
        pad: number of empty columns on each side.
    """

    spacing: float
    first: Ints
    last: Ints
    pad: int

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of columns along x and y, empty ones included."""
        x, y = (self.last - self.first + 1 + 2 * self.pad).tolist()
        return x, y

    def number(self, i: Ints, j: Ints) -> Ints:
        """Return flat numbers of columns."""
        return (i - self.first[0] + self.pad) * self.shape[1] + (j - self.first[1] + self.pad)

    def columns(self, number: Ints) -> Ints:
        """Return columns `(n, 2)` of flat numbers `(n,)`."""
        return np.stack(np.divmod(number, self.shape[1]), axis=1) + self.first - self.pad


@dataclass(frozen=True)
class Fillings:
    """Filled parts of columns, by column and from below.

    Attributes:
        column: `(n,)` flat number of the column.
        low, high: `(n,)` from where to where it is filled [m].
        steep: `(n,)` whether the top is too steep to stand on.
        solid: `(n,)` which solid fills it.
    """

    column: Ints
    low: Array
    high: Array
    steep: NDArray[np.bool_]
    solid: Ints

    @classmethod
    def of(cls, solids: Sequence[Solid], grid: Grid) -> Fillings:
        """Compute the filled parts of columns from solids."""
        spacing = grid.spacing
        found: list[tuple[Ints, Array, Array, NDArray[np.bool_]]] = []
        corners = np.array([[solid.low, solid.high] for solid in solids]).reshape(-1, 2, 3)
        columns = np.clip(np.floor(corners[:, :, :2] / spacing), grid.first, grid.last).astype(int)
        for solid, (begin, end) in zip(solids, columns, strict=True):
            i, j = np.arange(begin[0], end[0] + 1), np.arange(begin[1], end[1] + 1)
            spans = solid.spans((i + 0.5) * spacing, (j + 0.5) * spacing, spacing)
            at, across = np.nonzero(spans.inside)
            place = at, across
            found.append((grid.number(i[at], j[across]), spans.low[place], spans.high[place], spans.steep[place]))
        if not found:
            return cls(np.zeros(0, np.intp), np.zeros(0), np.zeros(0), np.zeros(0, bool), np.zeros(0, np.intp))
        column, low, high, steep = (np.concatenate(parts) for parts in zip(*found, strict=True))
        number = np.repeat(np.arange(len(solids)), [len(parts[0]) for parts in found])
        heights = corners[:, :, 2][np.isfinite(corners[:, :, 2])]
        bounds = heights.min(initial=0.0) - 1.0, heights.max(initial=0.0) + 1.0  # for what has none
        low, high = np.clip(low, *bounds), np.clip(high, *bounds)
        order = np.lexsort((low, column))
        return cls(column[order], low[order], high[order], steep[order], number[order])


@dataclass(frozen=True)
class Gaps:
    """Gaps above the filled parts of columns, by column and from below.

    Attributes:
        column: `(n,)` flat number of the column.
        floor, ceiling: `(n,)` from where to where it is empty [m].
        steep: `(n,)` whether its floor is too steep to stand on.
        layer: `(n,)` number of gaps below it in its column.
    """

    column: Ints
    floor: Array
    ceiling: Array
    steep: NDArray[np.bool_]
    layer: Ints

    @classmethod
    def above(cls, fillings: Fillings, agent: Agent) -> Gaps:
        """Return the gaps that could matter to an agent."""
        column, low, high = fillings.column, fillings.low, fillings.high
        if not len(column):
            return cls(column, low, high, fillings.steep, column)
        reach = float(high.max() - low.min()) + 1.0
        level = high - low.min() + column * reach
        top = np.maximum.accumulate(level)  # of all below in the same column
        owner = np.maximum.accumulate(np.where(level >= top, np.arange(len(top)), 0))
        floor = high[owner]
        ends = np.append(column[1:] != column[:-1], True)
        ceiling = np.where(ends, np.inf, np.append(low[1:], np.inf))
        kept = ceiling - floor >= agent.height - agent.step_height
        column, floor, ceiling, steep = column[kept], floor[kept], ceiling[kept], fillings.steep[owner][kept]
        starts = np.flatnonzero(np.append(True, column[1:] != column[:-1])) if len(column) else np.zeros(0, int)
        layer = np.arange(len(column)) - np.repeat(starts, np.diff(np.append(starts, len(column))))
        return cls(column, floor, ceiling, steep, layer)

    def standing(self, agent: Agent) -> NDArray[np.bool_]:
        """Return whether the agent fits into each gap, bool `(n,)`."""
        return self.ceiling - self.floor >= agent.height

    def index(self, count: int) -> list[Ints]:
        """Return by layer the index of the gap in each of so many columns; -1 for none."""
        index = np.full((int(self.layer.max()) + 1, count), -1)
        index[self.layer, self.column] = np.arange(len(self.column))
        return list(index)
