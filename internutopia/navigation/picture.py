"""Map picture: a floor of a navigation map from above, with paths drawn over it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from internutopia.navigation.map import NavigationMap
from internutopia.navigation.points import as_points

OBSTACLE, RAISED, NO_ROOM, OTHER_ISLAND, FREE = range(5)
"""Kinds of columns of a floor plan: nothing to stand on; the top of something; floor that is too close to something for
the agent; floor that is free, but without a way to the main island; free."""

PATH_COLORS = ('#0072b2', '#d4380d', '#00875a', '#8e44ad', '#00a3bf', '#a0522d')
"""Colours of paths, in sequence."""

_COLORS = np.array([[52, 58, 66], [128, 134, 142], [203, 209, 215], [226, 217, 190], [251, 251, 249]], np.uint8)
_LINE, _DOT = 0.05, 0.12  # m, width of a path and radius of its ends


@dataclass(frozen=True)
class FloorPlan:
    """A floor of a map as an array.

    Attributes:
        kinds: `(nx, ny)` what each column is: `OBSTACLE`, `RAISED`, `NO_ROOM`, `OTHER_ISLAND` or `FREE`.
        low: `(2,)` lowest corner of the array [m]: column `(i, j)` is the square from `low + (i, j) * spacing` on.
        spacing: width of a column [m].
        height: of the floor [m].
    """

    kinds: NDArray[np.uint8]
    low: NDArray[np.float64]
    spacing: float
    height: float


def floor_plan(navigation_map: NavigationMap, height: float | None = None) -> FloorPlan:
    """Return the plan of what can be stood on from a floor up to the height of the agent above it.

    Args:
        navigation_map: the map.
        height: of the floor [m]; None means that of most of the main island.
    """
    surface, agent = navigation_map.surface, navigation_map.agent
    if height is None:
        height = float(np.median(navigation_map.points[navigation_map.islands == 0, 2]))
    first = surface.columns.min(axis=0)
    kinds = np.full(surface.columns.max(axis=0) - first + 1, OBSTACLE, np.uint8)
    z = surface.heights
    here = (z >= height - agent.step_height) & (z < height + agent.height)
    floor = here & (z <= height + agent.step_height)
    free = np.flatnonzero(here & surface.free)
    nodes, _ = navigation_map.near(surface.points[free])
    main = free[navigation_map.islands[nodes[:, 0]] == 0]
    layers = (here, RAISED), (floor, NO_ROOM), (floor & surface.free, OTHER_ISLAND), (main, FREE)
    for chosen, kind in layers:
        kinds[tuple((surface.columns[chosen] - first).T)] = kind
    return FloorPlan(kinds, first * surface.spacing, surface.spacing, height)


class MapPicture:
    """An image of a floor, x to the right and y up.

    Args:
        navigation_map: the map.
        height: of the floor [m]; None means that of most of the main island.
        pixels_per_metre: how large.
    """

    def __init__(self, navigation_map: NavigationMap, height: float | None = None, pixels_per_metre: float = 80.0):
        self.plan = floor_plan(navigation_map, height)
        nx, ny = self.plan.kinds.shape
        size = (round(n * self.plan.spacing * pixels_per_metre) for n in (nx, ny))
        pixels = np.ascontiguousarray(_COLORS[self.plan.kinds.T[::-1]])
        self._image = Image.fromarray(pixels).resize((*size,), Image.Resampling.NEAREST)
        self._scale = pixels_per_metre
        self._paths = 0

    def pixels(self, points: ArrayLike) -> NDArray[np.float64]:
        """Project points `(n, 3)` [m] into the picture: column and row `(n, 2)` [pixels]."""
        at = (as_points(points)[:, :2] - self.plan.low) * self._scale
        return np.column_stack([at[:, 0], self._image.height - at[:, 1]])

    def add_path(self, points: ArrayLike, color: str | None = None) -> None:
        """Draw a path `(n, 3)` [m], with a ring where it starts and a dot where it ends.

        Args:
            points: its points; none draws nothing.
            color: such as `'#d4380d'`; None means the next one of `PATH_COLORS`.
        """
        color = color or PATH_COLORS[self._paths % len(PATH_COLORS)]
        self._paths += 1
        if not np.size(points):
            return
        corners = [(float(x), float(y)) for x, y in self.pixels(points)]
        width = max(2, round(_LINE * self._scale))
        draw = ImageDraw.Draw(self._image)
        draw.line(corners, fill=color, width=width, joint='curve')
        radius = max(3.0, _DOT * self._scale)
        draw.circle(corners[0], radius, fill='white', outline=color, width=width)
        draw.circle(corners[-1], radius, fill=color)

    def array(self) -> NDArray[np.uint8]:
        """Return the image `(height, width, 3)`, RGB."""
        return np.array(self._image)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the image into a file, whose folder is made if there is none.

        OSError if that cannot be done, ValueError if its suffix is none of an image.
        """
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._image.save(path)
        except ValueError as error:
            raise ValueError(f'{path}: {error}; for example, an image is a .png') from None
