"""Physics materials: friction and restitution of colliders.

MuJoCo has one coefficient of sliding friction for a contact, so the dynamic friction of materials is read. A geom
with a material goes before one without. Of two materials MuJoCo takes the greater friction, and the greater
restitution. Where their combine modes (PhysX: of both, the later of average, min, multiply and max; average if nothing
is said) lead to something else, the two colliders become a `<pair>` of their own. That holds within one file, and up to
`MAX_PAIRS`; beyond, the greater counts, and a warning says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from internutopia.model.contact_parameters import (
    add_pair,
    can_touch,
    excluded_bodies,
    is_loose,
    make_bouncy,
    make_rigid,
)
from internutopia.model.importers.file_warnings import FileWarnings
from internutopia.model.importers.usd.values import value

if TYPE_CHECKING:
    from pxr import Usd

MAX_PAIRS = 256  # MuJoCo looks at each of them in each step
_MODES = ('average', 'min', 'multiply', 'max')  # PhysX's order: of two materials, the later mode counts


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
        warnings.add('static friction that differs from the dynamic one', owner)
    if restitution > 1:
        warnings.add('restitution above 1 counts as 1', owner)
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
        geom.priority = 1
        if material.restitution > 0:
            make_bouncy(geom, material.restitution, timestep)
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
    if mode not in _MODES:
        raise ValueError(f'{material.GetPath()}: {name} must be one of {", ".join(_MODES)}, it is {mode!r}')
    return mode


def _combine(one: float, other: float, *modes: str) -> float:
    mode = max(modes, key=_MODES.index)
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
