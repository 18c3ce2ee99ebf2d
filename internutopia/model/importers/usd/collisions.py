"""Contacts between colliders of a stage: those that pass through each other, friction and restitution of the others.

`FilteredPairsAPI` and `enabledSelfCollisions` of bodies become MuJoCo's `exclude`; colliders of
collision groups, and filtered ones that are no whole bodies, by bits of `contype` and `conaffinity`. Bit 0 is for
colliders that no group holds: they meet all others, also those of other files. Where the bits are too few, whole bodies
are excluded instead, and what is left shares bits: moving parts of a hundred models that all pass through the walls.

MuJoCo has one coefficient of sliding friction for a contact, so the dynamic friction of materials is read. A geom
with a material goes before one without. Of two materials MuJoCo takes the greater friction, and the greater
restitution. Where their combine modes (PhysX: of both, the later of average, min, multiply and max; the default is
average) lead to something else, the two colliders become a `<pair>` of their own. That holds within one file, and up to
`MAX_PAIRS`; beyond, the greater counts, with a warning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from internutopia.model.contacts import (
    SELF_COLLISIONS_OFF,
    STIFF_SOLREF,
    add_pair,
    can_touch,
    excluded_bodies,
    is_loose,
    make_bouncy,
    make_rigid,
)
from internutopia.model.importers import FileWarnings
from internutopia.model.importers.usd.values import bound_material, value
from internutopia.model.physx_attributes import COMBINE_MODES

if TYPE_CHECKING:
    from pxr import Sdf, Usd


_BITS = 31  # of contype and conaffinity that are not a sign

_Sides = tuple[set[str], set[str]]  # colliders that do not meet those of the other side, by path
MAX_PAIRS = 256  # MuJoCo tests each of them in each step


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
        self._switched_off: set[frozenset[str]] = set()  # likewise, of whole articulations
        self._groups: list[_Sides] = []
        self._by_body: dict[str, set[str]] = {}  # paths of colliders, by the name of their body
        for prim, geom in colliders:
            self._by_body.setdefault(geom.parent.name, set()).add(str(prim.GetPath()))
        self._body_of = {path: body for body, paths in self._by_body.items() for path in paths}

    def exclude_links(self, links: Iterable[str], *, articulation: bool = False) -> None:
        """Let bodies, given by path, pass through each other; `articulation`: they are all of its bodies that do."""
        excluded = self._switched_off if articulation else self._excluded
        for one, other in combinations([self._bodies[link] for link in links], 2):
            if one in self._by_body and other in self._by_body:
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
        """Write the filter into the spec."""
        kinds = self._kinds(self._groups)
        if len(kinds) > _BITS:
            kinds = self._kinds([rest for group in self._groups for rest in self._exclude_bodies(*group)])
        if len(kinds) > _BITS:
            self._warnings.add(f'only {_BITS - 1} kinds of collision groups and filtered colliders', 'the rest collide')
            kinds = kinds[:_BITS]
        for one, other in sorted(map(sorted, self._excluded)):
            self._spec.add_exclude(bodyname1=one, bodyname2=other)
        for one, other in sorted(map(sorted, self._switched_off - self._excluded)):
            self._spec.add_exclude(name=f'{SELF_COLLISIONS_OFF}{one}/{other}', bodyname1=one, bodyname2=other)
        if len(kinds) == 1:
            return
        bits = {path: k for k, (_, members) in enumerate(kinds) for path in members}
        affinities = [sum(1 << k for k, (_, other) in enumerate(kinds) if not through & other) for through, _ in kinds]
        for prim, geom in self._colliders:
            k = bits.get(str(prim.GetPath()), 0)
            geom.contype, geom.conaffinity = 1 << k, affinities[k]

    def _kinds(self, groups: Sequence[_Sides]) -> list[tuple[frozenset[str], set[str]]]:
        """Group colliders by those that they pass through; first the ones that pass through none."""
        sides: dict[str, set[tuple[int, int]]] = {str(prim.GetPath()): set() for prim, _ in self._colliders}
        for i, group in enumerate(groups):
            for side, members in enumerate(group):
                for path in members:
                    sides[path].add((i, side))
        known: dict[frozenset[tuple[int, int]], frozenset[str]] = {}
        kinds: dict[frozenset[str], set[str]] = {frozenset(): set()}
        for path, own in sides.items():
            key = frozenset(own)
            if key not in known:
                known[key] = frozenset[str]().union(*(groups[i][1 - side] for i, side in own))
            kinds.setdefault(known[key], set()).add(path)
        return list(kinds.items())

    def _exclude_bodies(self, one: set[str], other: set[str]) -> list[_Sides]:
        """Exclude the bodies that are on one side with all their colliders; returns what is left to filter."""
        whole: list[dict[str, set[str]]] = []
        for side in (one, other):
            bodies = {self._body_of[path] for path in side} - {'world'}
            whole.append({body: self._by_body[body] for body in bodies if self._by_body[body] <= side})
        for first in whole[0]:
            for second in whole[1]:
                self._exclude(first, second)
        left = [side.difference(*bodies.values()) for side, bodies in zip((one, other), whole, strict=True)]
        return [sides for sides in ((left[0], other), (one, left[1])) if all(sides)]

    def _exclude(self, one: str, other: str) -> None:
        if one != other:
            self._excluded.add(frozenset((one, other)))

    def _named(self, path: str, links: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the names of the bodies that a path stands for: itself, or those of the articulation rooted there."""
        return [self._bodies[p] for p in ([path] if path in self._bodies else links.get(path, ()))]

    def _below(self, path: str) -> set[str]:
        """Return the paths of the colliders at or below a path."""
        paths = (str(prim.GetPath()) for prim, _ in self._colliders)
        return {p for p in paths if p == path or p.startswith(path + '/')}


@dataclass(frozen=True)
class PhysicsMaterial:
    """Coefficients of a physics material, and how they combine with those of another one."""

    friction: float
    restitution: float
    friction_mode: str = 'average'
    restitution_mode: str = 'average'


def physics_material(prim: Usd.Prim, warnings: FileWarnings) -> PhysicsMaterial | None:
    """Return the physics material that is bound to a collider or to a prim above it.

    Raises:
        ValueError: A coefficient is negative, or a combine mode unknown.
    """
    owner = bound_material(prim, 'physics')
    if owner is None:
        return None
    names = ('staticFriction', 'dynamicFriction', 'restitution')
    static, dynamic, restitution = given = [float(value(owner, f'physics:{name}')) for name in names]
    if not (np.isfinite(given).all() and min(given) >= 0):
        raise ValueError(f'{owner.GetPath()}: friction and restitution cannot be negative')
    if static != dynamic:
        warnings.add('static friction that differs from dynamic friction only applies on PhysX', owner)
    if restitution > 1:
        warnings.add('restitution above 1 is treated as 1', owner)
    return PhysicsMaterial(dynamic, min(restitution, 1.0), _mode(owner, 'friction'), _mode(owner, 'restitution'))


def apply_materials(
    spec: mujoco.MjSpec,
    colliders: Sequence[tuple[Usd.Prim, mujoco.MjsGeom]],
    warnings: FileWarnings,
) -> None:
    """Give colliders the friction and restitution of their materials; loose bodies are rigid.

    Args:
        spec: With the time step that it will be run with, and with all that passes through each other.
        colliders: Geoms with the prims that they belong to.
        warnings: For what is left out.
    """
    timestep = spec.option.timestep
    for _, geom in colliders:
        if is_loose(geom.parent):
            make_rigid(geom)
    geoms: dict[PhysicsMaterial, list[mujoco.MjsGeom]] = defaultdict(list)
    for prim, geom in colliders:
        material = physics_material(prim, warnings)
        if material is None:
            continue
        geoms[material].append(geom)
        geom.friction[0] = material.friction
        geom.priority = 1  # so what it touches does not count: feet may stand on it
        if material.restitution > 0:
            make_bouncy(geom, material.restitution, timestep)
        elif not is_loose(geom.parent):
            geom.solref = STIFF_SOLREF
    pairs = list(_special_pairs(geoms, excluded_bodies(spec)))
    if len(pairs) > MAX_PAIRS:
        kinds = 'friction and restitution combine to the greater of both'
        warnings.add(f'{len(pairs)} pairs of colliders have materials of other combine modes: {kinds}', 'all materials')
        return
    for one, other, friction, restitution in pairs:
        pair = add_pair(spec, one, other, friction)
        if restitution > 0:
            make_bouncy(pair, restitution, timestep)
        elif is_loose(one.parent) or is_loose(other.parent):
            make_rigid(pair)


def _mode(material: Usd.Prim, kind: str) -> str:
    name = f'physxMaterial:{kind}CombineMode'
    mode = str(value(material, name) or 'average')
    if mode not in COMBINE_MODES:
        raise ValueError(f'{material.GetPath()}: {name} must be one of {", ".join(COMBINE_MODES)}, it is {mode!r}')
    return mode


def _combine(one: float, other: float, *modes: str) -> float:
    mode = max(modes, key=COMBINE_MODES.index)
    return {'average': (one + other) / 2, 'min': min(one, other), 'multiply': one * other, 'max': max(one, other)}[mode]


def _special_pairs(
    geoms: dict[PhysicsMaterial, list[mujoco.MjsGeom]], excluded: set[frozenset[str]]
) -> Iterator[tuple[mujoco.MjsGeom, mujoco.MjsGeom, float, float]]:
    """Return geoms that can touch and combine to other than the greater value; their friction, restitution."""
    for one, other in combinations_with_replacement(geoms, 2):
        friction = _combine(one.friction, other.friction, one.friction_mode, other.friction_mode)
        restitution = _combine(one.restitution, other.restitution, one.restitution_mode, other.restitution_mode)
        greater = max(one.friction, other.friction), max(one.restitution, other.restitution)
        if np.allclose((friction, restitution), greater, atol=1e-6):  # USD's are 32-bit floats
            continue
        for i, first in enumerate(geoms[one]):
            for second in geoms[other][i + 1 :] if one is other else geoms[other]:
                if can_touch(first, second, excluded):
                    yield first, second, friction, restitution
