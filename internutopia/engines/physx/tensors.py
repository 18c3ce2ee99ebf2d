"""Tensors of PhysX, whoever hosts it: what env batches need of `ovphysx`, or of Isaac Sim.

Poses and contact points are in the frame of the env, wherever its copy stands in the host's world. Rows and columns are
in the order of the paths. Angles are radians.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


POSES = ('ROOT_POSE', 'RIGID_BODY_POSE')
"""How names of poses end that are of the host's world, not of a body."""
_FARTHEST = 512.0  # [m] from where on 32-bit floats are coarser than 0.03 mm


def slot_places(slots: int, spacing: float) -> NDArray[np.floating]:
    """Return where the copies of a stage stand in the host's world, `(slots, 3)` [m]: on a near-square grid.

    It is as wide as envs stand apart, `spacing` [m], but as narrow as keeps 32-bit floats precise.
    """
    columns = math.isqrt(max(slots - 1, 0)) + 1
    places = np.arange(slots)
    grid = np.stack([places // columns, places % columns, 0.0 * places], axis=-1)
    return grid * min(spacing, _FARTHEST / columns)


class Columns(Protocol):
    """One quantity of `count` things in each slot, `(slots, count, ...)`."""

    shape: tuple[int, ...]
    values: Floats
    """Values that were read or written last; to be changed before `write`."""

    def read(self) -> Floats:
        """Read all values."""
        ...

    def write(self, slots: NDArray[np.intp] | None = None) -> None:
        """Write `values` of some slots; None for all."""
        ...

    def names(self) -> tuple[str, ...]:
        """Return the names of the dofs of an articulation."""
        ...

    def links(self) -> tuple[str, ...]:
        """Return the names of the links of an articulation."""
        ...


class ContactForces(Protocol):
    """Net contact forces [N] on `count` colliders of each slot, `(slots, count, 3)`, axes of the env."""

    def read(self) -> Floats:
        """Return the forces of the last step."""
        ...


class ContactPoints(Protocol):
    """Points [m] and unit normals, towards what is touched, of the strongest contacts in each slot, `(slots, k, 6)`."""

    def read(self) -> Floats:
        """Return those of the last step; zero where there are fewer."""
        ...


class TensorAccess(Protocol):
    """`slots` copies of a stage that are stepped together."""

    slots: int
    shared: bool
    """True if the host steps all stages at once: then each of them moves in any step."""

    def step(self, dt: float) -> None:
        """Advance all copies by one time step [s]."""
        ...

    def columns(self, kind: str, paths: Sequence[str]) -> Columns:
        """Return a quantity of things at paths below each env; `kind` is a name of `ovphysx.types.TensorType`."""
        ...

    def contact_forces(self, paths: Sequence[str], against: Sequence[str] = ()) -> ContactForces:
        """Return the net contact forces on prims with a contact report, at paths below each env.

        With `against`, only contacts with what is at these paths count.
        """
        ...

    def contact_points(self, paths: Sequence[str], most: int) -> ContactPoints:
        """Return the `most` strongest contacts of prims with a contact report, at paths below each env."""
        ...

    def close(self) -> None:
        """Free it; may be called twice."""
        ...


def strongest(forces: Floats, points: Floats, normals: Floats, found: Floats) -> None:
    """Write the strongest contacts of some colliders, as `ContactPoints` has them, into the first rows of `found`.

    Args:
        forces: `(n,)` [N]; a collider gets force times normal.
        points: `(n, 3)`.
        normals: `(n, 3)`.
        found: `(k, 6)`.
    """
    order = np.argsort(-np.abs(forces), kind='stable')[: len(found)]
    found[: len(order), :3] = points[order]
    found[: len(order), 3:] = -np.sign(forces[order])[:, None] * normals[order]
