"""Rectilinear solids, such as walls with doors and windows: closed surfaces whose faces are square to each other.

Such a solid is exactly a number of boxes: its faces lie in few planes, and the cells between these are full or empty.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from internutopia.model.meshes.hulls import box_corners, dominant_axes
from internutopia.model.meshes.surfaces import Floats, Ints, Surface, normals_of

MAX_CELLS = 1_000_000
"""Maximum number of cells of a rectilinear solid; one with more is handled as another shape."""
MAX_FACES = 5000
"""Maximum number of its triangles."""

_EXACT = 1e-4  # planes closer than this part of the extent are one
_SAME_VOLUME = 0.02  # how much of its volume a solid may gain or lose when its planes are put together
_GENERIC = (0.4142, 0.5858 - 0.0313)  # a point of a cell that no diagonal of a rectangle of cells meets


def boxes_of(solid: Surface, slack: float) -> tuple[Floats, list[Floats]] | None:
    """Return the boxes of a rectilinear solid, few of them.

    Args:
        solid: A closed surface that faces outwards.
        slack: Faces that are closer to each other than this [m] may be put into one plane, as those of a bevel.

    Returns:
        Axes `(3, 3)`, one a column, and the corners `(8, 3)` of each box; None if the solid is not rectilinear.
    """
    if len(solid.faces) > MAX_FACES or (axes := dominant_axes(solid)) is None:
        return None
    exact = _EXACT * float(solid.extent.max())
    volume = solid.volume
    for gap in (exact, slack):
        grid = _Grid.of(solid, axes, gap)
        full = None if grid is None else grid.full()
        if grid is None or full is None:
            continue
        sizes = [np.diff(planes) for planes in grid.planes]
        filled = np.einsum('ijk,i,j,k->', full.astype(float), *sizes)
        if abs(filled - volume) <= _SAME_VOLUME * volume:
            bounds = min((_merged(full, order) for order in permutations(range(3))), key=len)
            lows = np.stack([grid.planes[k][bounds[:, k, 0]] for k in range(3)], axis=1)
            highs = np.stack([grid.planes[k][bounds[:, k, 1]] for k in range(3)], axis=1)
            return axes, [box_corners(low, high) @ axes.T for low, high in zip(lows, highs, strict=True)]
    return None


class _Grid:
    """The planes `(n,)` of a solid's faces along each axis, and its triangles by them."""

    def __init__(self, planes: list[Floats], triangles: Ints):
        self.planes = planes
        self.triangles = triangles  # (m, 3, 3): which planes each corner is in

    @classmethod
    def of(cls, solid: Surface, axes: Floats, gap: float) -> _Grid | None:
        """Return the grid of a solid; None if faces lie in no plane along the axes, once those within `gap` are one."""
        spread = solid.vertices @ axes
        normals, areas = normals_of(solid.vertices[solid.faces])
        planes, places = [], np.empty(spread.shape, np.int64)
        for axis in range(3):
            order = np.argsort(spread[:, axis], kind='stable')
            ordered = spread[order, axis]
            group = np.concatenate([[0], np.cumsum(np.diff(ordered) > gap)])
            first = np.flatnonzero(np.diff(group, prepend=-1))
            last = np.append(first[1:], len(group)) - 1
            if (ordered[last] - ordered[first]).max() > 3 * gap:
                return None  # a slope
            places[order, axis] = group
            # of planes that become one the place is that of the largest face
            facing = np.abs(normals[:, axis]) * areas
            weight = np.bincount(solid.faces.ravel(), np.repeat(facing, 3), len(spread))[order] + 1e-12 * areas.max()
            heaviest = np.lexsort((-weight, group))
            planes.append(ordered[heaviest[np.unique(group[heaviest], return_index=True)[1]]])
        if np.prod([len(each) for each in planes], dtype=float) > MAX_CELLS:
            return None
        triangles = places[solid.faces]
        flat = (triangles == triangles[:, :1]).all(axis=1).any(axis=1)
        sides = triangles[:, 1:] - triangles[:, :1]
        slanted = ~flat & np.cross(sides[:, 0], sides[:, 1]).any(axis=1)
        return None if slanted.any() else cls(planes, triangles)

    def full(self) -> NDArray[np.bool_] | None:
        """Return which cells between the planes are inside; None if the surface does not wind around each once."""
        shape = [len(each) for each in self.planes]
        winding = np.zeros((shape[0], shape[1] - 1, shape[2] - 1), np.int64)
        facing_x = self.triangles[(self.triangles[:, :, 0] == self.triangles[:, :1, 0]).all(axis=1)]
        points = [
            planes[:-1] + share * np.diff(planes) for planes, share in zip(self.planes[1:], _GENERIC, strict=True)
        ]
        for triangle in facing_x:
            low, high = triangle[:, 1:].min(axis=0), triangle[:, 1:].max(axis=0)
            y, z = (self.planes[k + 1][triangle[:, k + 1]] for k in range(2))
            area = (y[1] - y[0]) * (z[2] - z[0]) - (y[2] - y[0]) * (z[1] - z[0])
            if area == 0:
                continue
            ys, zs = points[0][low[0] : high[0], None], points[1][None, low[1] : high[1]]
            inside = np.ones((high[0] - low[0], high[1] - low[1]), bool)
            for a, b in ((0, 1), (1, 2), (2, 0)):
                inside &= ((y[b] - y[a]) * (zs - z[a]) - (ys - y[a]) * (z[b] - z[a])) * area > 0
            # along x, one enters through what faces against it
            winding[triangle[0, 0], low[0] : high[0], low[1] : high[1]] -= np.where(inside, int(np.sign(area)), 0)
        winding = np.cumsum(winding, axis=0)
        if winding[-1].any() or winding.min(initial=0) < 0:
            return None
        return winding[:-1] > 0


def _merged(full: NDArray[np.bool_], order: tuple[int, ...]) -> Ints:
    """Return full cells as boxes `(n, 3, 2)` of first and last planes, merged along one axis after the other."""
    cells = np.argwhere(full)
    boxes = np.stack([cells, cells + 1], axis=2)
    for axis in order:
        others = [k for k in range(3) if k != axis]
        keys = [boxes[:, axis, 0], *(boxes[:, k, side] for k in others for side in range(2))]
        boxes = boxes[np.lexsort(keys)]
        same = (boxes[1:, others] == boxes[:-1, others]).all(axis=(1, 2))
        joined = np.concatenate([[False], same & (boxes[1:, axis, 0] == boxes[:-1, axis, 1])])
        first = np.flatnonzero(~joined)
        ends = np.append(first[1:], len(boxes)) - 1
        last = boxes[ends, axis, 1]
        boxes = boxes[first]
        boxes[:, axis, 1] = last
    return boxes
