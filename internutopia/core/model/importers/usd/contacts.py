"""Collision filter: the colliders of a stage that pass through each other.

Bodies pass through each other as `FilteredPairsAPI` and `enabledSelfCollisions` say by MuJoCo's `exclude`; colliders of
collision groups, and filtered ones that are no whole bodies, by bits of `contype` and `conaffinity`. Bit 0 is for
colliders that no group holds: they meet all others, also those of other files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import mujoco

from internutopia.core.model.importers.file_warnings import FileWarnings
from internutopia.core.model.self_collision import SELF_COLLISIONS_OFF

if TYPE_CHECKING:
    from pxr import Sdf, Usd

_BITS = 31  # of contype and conaffinity that are not a sign


class CollisionFilter:
    """The colliders of a stage that pass through each other.

    `colliders`: geoms that collide by the prim they belong to, `bodies`: names of movable bodies in the spec by path.
    """

    def __init__(
        self,
        spec: mujoco.MjSpec,
        colliders: Sequence[tuple[Usd.Prim, mujoco.MjsGeom]],
        bodies: Mapping[str, str],
        warnings: FileWarnings,
    ):
        self._spec = spec
        self._colliders = colliders
        self._bodies = bodies
        self._warnings = warnings
        self._excluded: set[frozenset[str]] = set()
        self._switched_off: set[frozenset[str]] = set()  # likewise, as a whole articulation says so
        self._groups: list[tuple[set[str], set[str]]] = []  # prims of two sides that do not meet, by path

    def exclude_links(self, links: Iterable[str], *, articulation: bool = False) -> None:
        """Let bodies, given by path, pass through each other; `articulation`: it is all of them that do."""
        collide = {geom.parent.name for _, geom in self._colliders}
        excluded = self._switched_off if articulation else self._excluded
        for one, other in combinations([self._bodies[link] for link in links], 2):
            if one in collide and other in collide:
                excluded.add(frozenset((one, other)))

    def add_pairs(self, prims: Iterable[Usd.Prim], links: Mapping[str, Sequence[str]]) -> None:
        """Read `FilteredPairsAPI`. `links`: bodies of articulations by the path of their root."""
        from pxr import UsdPhysics

        for prim in prims:
            if not prim.HasAPI(UsdPhysics.FilteredPairsAPI):
                continue
            for target in prim.GetRelationship('physics:filteredPairs').GetForwardedTargets():
                mine, theirs = (self._named(path, links) for path in (str(prim.GetPath()), str(target)))
                if mine and theirs:
                    for one in mine:
                        for other in theirs:
                            self._exclude(one, other)
                    continue
                sides = [self._below(path) for path in (str(prim.GetPath()), str(target))]
                if all(sides):
                    self._groups.append((sides[0], sides[1]))

    def add_groups(self, prims: Iterable[Usd.Prim]) -> None:
        """Read `PhysicsCollisionGroup`."""
        from pxr import UsdPhysics

        groups = [UsdPhysics.CollisionGroup(prim) for prim in prims if prim.IsA(UsdPhysics.CollisionGroup)]
        if not groups:
            return
        stage = groups[0].GetPrim().GetStage()
        table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(stage)
        members: dict[Sdf.Path, set[str]] = {}
        for group in groups:
            query = group.GetCollidersCollectionAPI().ComputeMembershipQuery()
            members[group.GetPath()] = {
                str(prim.GetPath()) for prim, _ in self._colliders if query.IsPathIncluded(prim.GetPath())
            }
        for i, one in enumerate(members):
            for other in list(members)[i:]:
                if not table.IsCollisionEnabled(one, other) and members[one] and members[other]:
                    self._groups.append((members[one], members[other]))

    def apply(self) -> None:
        """Write what was found into the spec."""
        for pair in self._excluded:
            one, other = sorted(pair)
            self._spec.add_exclude(bodyname1=one, bodyname2=other)
        for pair in self._switched_off - self._excluded:
            one, other = sorted(pair)
            self._spec.add_exclude(name=f'{SELF_COLLISIONS_OFF}{one}/{other}', bodyname1=one, bodyname2=other)
        if not self._groups:
            return
        # colliders that are on the same sides of the same groups share a bit
        sides = [
            frozenset((i, side) for i, group in enumerate(self._groups) for side in (0, 1) if path in group[side])
            for path in (str(prim.GetPath()) for prim, _ in self._colliders)
        ]
        kinds = [frozenset[tuple[int, int]](), *sorted({side for side in sides if side}, key=sorted)]
        if len(kinds) > _BITS:
            self._warnings.add(f'only {_BITS - 1} kinds of collision groups and filtered colliders', 'the rest collide')
            kinds = kinds[:_BITS]
        affinities = [
            sum(1 << k for k, other in enumerate(kinds) if not any((i, 1 - side) in other for i, side in kind))
            for kind in kinds
        ]
        for side, (_, geom) in zip(sides, self._colliders, strict=True):
            k = kinds.index(side) if side in kinds else 0
            geom.contype, geom.conaffinity = 1 << k, affinities[k]

    def _exclude(self, one: str, other: str) -> None:
        if one != other:
            self._excluded.add(frozenset((one, other)))

    def _named(self, path: str, links: Mapping[str, Sequence[str]]) -> list[str]:
        """Names of the bodies that a path stands for: itself, or those of the articulation rooted there."""
        return [self._bodies[p] for p in ([path] if path in self._bodies else links.get(path, ()))]

    def _below(self, path: str) -> set[str]:
        """Paths of the colliders at or below a path."""
        paths = (str(prim.GetPath()) for prim, _ in self._colliders)
        return {p for p in paths if p == path or p.startswith(path + '/')}
