"""Design, what a model of a home is made of: parts with a role, joints, slots for things on it, and spaces in it.

Frame of a design: z up, origin in the middle of its footprint on the floor, front towards -y. Lengths in metres.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.homes.shapes import Array, Surface

Vec3 = tuple[float, float, float]
Scope = Literal['Base', 'BaseAnimation', 'Furniture', 'Animation']
SpaceKind = Literal['doorway', 'below_table', 'bowl', 'cupboard']


def vec3(values: ArrayLike) -> Vec3:
    """Three numbers as plain floats, to a micrometre."""
    x, y, z = (round(float(value), 6) for value in np.asarray(values))
    return x, y, z


class Part(NamedTuple):
    """One mesh: its surface, the role that its material has, and the group that moves it (0: none)."""

    surface: Surface
    role: str
    group: int = 0


class Joint(NamedTuple):
    """Joint of a group, against group 0: its place [m], its axis and its range [deg or m]."""

    group: int
    kind: Literal['revolute', 'prismatic']
    axis: Literal['X', 'Y', 'Z']
    anchor: Vec3
    low: float
    high: float


class Slot(NamedTuple):
    """A place for a small thing: its middle [m], and how wide [m] and how high [m] that may be."""

    position: Vec3
    radius: float
    height: float = 1.0


class Space(NamedTuple):
    """A box that is free of triangles, from its lowest to its highest corner [m]."""

    kind: SpaceKind
    low: Vec3
    high: Vec3


@dataclass(frozen=True)
class Design:
    """A model.

    Attributes:
        category: as in its folder and its label.
        scope: below which prim it stands.
        parts: its meshes.
        joints: one for each group but 0; with any, it is articulated.
        slots: where small things may stand on it.
        spaces: what stays free, in its own frame.
    """

    category: str
    scope: Scope
    parts: tuple[Part, ...]
    joints: tuple[Joint, ...] = ()
    slots: tuple[Slot, ...] = ()
    spaces: tuple[Space, ...] = ()

    @property
    def bounds(self) -> Array:
        """Lowest and highest corner, `(2, 3)` [m]."""
        found = np.stack([part.surface.bounds for part in self.parts])
        return np.stack([found[:, 0].min(axis=0), found[:, 1].max(axis=0)])

    @property
    def triangles(self) -> int:
        """Of all parts."""
        return sum(len(part.surface.triangles) for part in self.parts)


Maker = Callable[[np.random.Generator, float], Design]
"""Makes a design: sizes from the random numbers, how finely round things are from the detail."""
