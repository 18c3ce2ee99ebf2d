"""How colliders touch: friction and restitution, and which of them pass through each other.

MuJoCo knows one coefficient of sliding friction for a pair of geoms, the greater of both, so the dynamic friction of
physics materials is read, and combine modes are not. A geom with a material of its own goes before one without.
Restitution is a contact that is a damped spring: the ball of coefficient `e` comes back with `e` times its speed.

Bodies pass through each other as `FilteredPairsAPI` and `enabledSelfCollisions` say by MuJoCo's `exclude`; colliders of
collision groups, and filtered ones that are no whole bodies, by bits of `contype` and `conaffinity`. Bit 0 is for
colliders that no group holds: they meet all others, also those of other files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from internutopia.core.scene.usd.notes import Notes
from internutopia.core.scene.usd.shapes import value

if TYPE_CHECKING:
    from pxr import Sdf, Usd

BOUNCE_TIME = 0.02  # [s] that a bounce lasts: several steps of any usual size
_BITS = 31  # of contype and conaffinity that are not a sign


@dataclass(frozen=True)
class Surface:
    """Coefficients of a physics material."""

    friction: float
    restitution: float


def surface_of(prim: Usd.Prim, notes: Notes) -> Surface | None:
    """The physics material that is bound to a collider or to something above it. ValueError for a negative value."""
    from pxr import UsdPhysics, UsdShade

    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial('physics')
    owner = material.GetPrim() if material else None
    if not owner or not owner.HasAPI(UsdPhysics.MaterialAPI):
        return None
    names = ('staticFriction', 'dynamicFriction', 'restitution')
    static, dynamic, restitution = given = [float(value(owner, f'physics:{name}')) for name in names]
    if not (np.isfinite(given).all() and min(given) >= 0):
        raise ValueError(f'{owner.GetPath()}: friction and restitution cannot be negative')
    if static != dynamic:
        notes.add('static friction that differs from the dynamic one', owner)
    for mode in ('frictionCombineMode', 'restitutionCombineMode'):
        if value(owner, f'physxMaterial:{mode}') not in (None, 'max'):
            notes.add(f'{mode} other than max', owner)
    return Surface(dynamic, restitution)


def set_surface(geom: mujoco.MjsGeom, surface: Surface) -> None:
    """Let a geom slide and bounce as a surface does."""
    geom.friction[0] = surface.friction
    geom.priority = 1
    if surface.restitution > 0:
        damping = _damping_ratio(surface.restitution)
        geom.solref = BOUNCE_TIME / np.pi / damping, damping


def _damping_ratio(restitution: float) -> float:
    """Damping ratio of the spring that gives back a part of the speed.

    Schwager and Poeschel 2007, "Coefficient of restitution and linear-dashpot model revisited", equation (24), with the
    end of the contact where its force vanishes.
    """
    ratios = np.linspace(0.005, 0.7, 500)
    root = np.sqrt(1 - ratios**2)
    restitutions = np.exp(-ratios / root * (np.pi - np.arctan(2 * ratios * root / (1 - 2 * ratios**2))))
    return float(np.interp(-restitution, -restitutions, ratios))


class Filter:
    """Which colliders of a stage pass through each other.

    `colliders`: geoms that collide by the prim they belong to, `bodies`: names of movable bodies in the spec by path.
    """

    def __init__(
        self,
        spec: mujoco.MjSpec,
        colliders: Sequence[tuple[Usd.Prim, mujoco.MjsGeom]],
        bodies: Mapping[str, str],
        notes: Notes,
    ):
        self._spec = spec
        self._colliders = colliders
        self._bodies = bodies
        self._notes = notes
        self._excluded: set[frozenset[str]] = set()
        self._groups: list[tuple[set[str], set[str]]] = []  # prims of two sides that do not meet, by path

    def exclude_links(self, links: Iterable[str]) -> None:
        """Let bodies, given by path, pass through each other."""
        collide = {geom.parent.name for _, geom in self._colliders}
        for one, other in combinations([self._bodies[link] for link in links], 2):
            if one in collide and other in collide:
                self._exclude(one, other)

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
        if not self._groups:
            return
        # colliders that are on the same sides of the same groups share a bit
        sides = [
            frozenset((i, side) for i, group in enumerate(self._groups) for side in (0, 1) if path in group[side])
            for path in (str(prim.GetPath()) for prim, _ in self._colliders)
        ]
        kinds = [frozenset[tuple[int, int]](), *sorted({side for side in sides if side}, key=sorted)]
        if len(kinds) > _BITS:
            self._notes.add(f'only {_BITS - 1} kinds of collision groups and filtered colliders', 'the rest collide')
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
