"""Collision filters: bodies of a model that pass through each other, and how they are set in PhysX."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import mujoco
import numpy as np

from internutopia.engines.physx.bodies import Movers

_PARENTS_TOUCH = int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)


class Filters:
    """Contacts that MuJoCo does not look for, of bodies that move.

    Attributes:
        bits: distinct `contype` and `conaffinity` of colliders.
        colliders: geoms that collide, by body.
    """

    def __init__(self, movers: Movers):
        model = movers.model
        self._movers, self._model = movers, model
        solid = np.flatnonzero((model.geom_contype | model.geom_conaffinity) > 0)
        self.colliders: dict[int, list[int]] = {}
        for geom in solid.tolist():
            self.colliders.setdefault(int(model.geom_bodyid[geom]), []).append(geom)
        self.bits = sorted({self.bits_of(geom) for geom in solid.tolist()})
        self._excluded = {
            frozenset((signature >> 16, signature & 0xFFFF)) for signature in model.exclude_signature.tolist()
        }
        self._parents_touch = bool(model.opt.disableflags & _PARENTS_TOUCH)

    def bits_of(self, geom: int) -> tuple[int, int]:
        """Return `contype` and `conaffinity` of a geom."""
        return int(self._model.geom_contype[geom]), int(self._model.geom_conaffinity[geom])

    def strangers(self) -> Iterator[tuple[int, int]]:
        """Yield places in `bits` of geoms that pass through each other, an index with itself included."""
        for i, (type_1, affinity_1) in enumerate(self.bits):
            for j, (type_2, affinity_2) in enumerate(self.bits[: i + 1]):
                if not (type_1 & affinity_2 or type_2 & affinity_1):
                    yield i, j

    def touches(self, one: int, other: int) -> bool:
        """Return True if geoms of two bodies, of different movers, can have contacts by what is said of the bodies."""
        first, second = int(self._movers.wholes[one]), int(self._movers.wholes[other])
        if first == second or frozenset((one, other)) in self._excluded:
            return False
        return self._parents_touch or not (self._hangs_on(first, second) or self._hangs_on(second, first))

    def passing(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of bodies with colliders, of different movers, that do not touch."""
        wholes = self._movers.wholes
        joined = {(whole, whole) for whole in wholes.tolist()}
        if not self._parents_touch:
            joined |= {(int(wholes[mover]), int(wholes[parent])) for mover, parent in self._movers.parents.items()}
        solid: dict[int, list[int]] = {}
        for body in self.colliders:
            solid.setdefault(int(wholes[body]), []).append(body)
        pairs = {pair for pair in self._excluded if len(pair) == 2 and pair <= self.colliders.keys()}
        for first, second in joined:
            if first and second:
                pairs |= {frozenset((a, b)) for a in solid.get(first, ()) for b in solid.get(second, ()) if a != b}
        for pair in sorted(map(sorted, pairs)):
            one, other = pair
            if self._movers.of[one] != self._movers.of[other]:
                yield one, other

    def none_inside(self, bodies: list[int]) -> bool:
        """Return True if no two of these bodies touch."""
        solid = [body for body in bodies if body in self.colliders]
        return not any(
            self.touches(one, other)
            for one, other in combinations(solid, 2)
            if self._movers.of[one] != self._movers.of[other]
        )

    def _hangs_on(self, child: int, parent: int) -> bool:
        above = self._movers.parents.get(child, 0)
        return parent != 0 and self._movers.wholes[above] == parent
