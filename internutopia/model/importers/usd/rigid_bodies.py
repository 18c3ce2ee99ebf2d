"""Bodies of a stage: the prims that move, those that collide, and masses.

| | comes from |
|---|---|
| mass | MassAPI of the body, else the colliders: their own mass, or volume times density |
| density | MassAPI of the collider, else of the body, else its physics material, else 1000 kg/m3 |
| centre of mass, inertia | MassAPI of the body, else the colliders |

A value that is zero (`mass`, `diagonalInertia`, `principalAxes`) or infinite (`centerOfMass`) is one that is not given,
as UsdPhysics has it. A body without colliders weighs what its visible shapes do, flat ones nothing. One without shapes,
or of which none weighs anything, has the inertia of a ball of 10 cm radius; without any mass given, it is 1 kg
if it moves on its own, else nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from internutopia.model.importers import FileWarnings
from internutopia.model.importers.transforms import Array, Frame, from_quat, principal, to_quat
from internutopia.model.importers.usd.values import bound_material, named_by_prim, value

if TYPE_CHECKING:
    from pxr import Usd

    from internutopia.model.importers.usd.stage_transforms import StageTransforms


DEFAULT_DENSITY = 1000.0  # [kg/m3], as UsdPhysics has it
_MERGE_API, _MERGED = 'PhysxMeshMergeCollisionAPI', 'collisionmeshes'  # of PhysX, and the name of its collection
BALL_RADIUS = 0.1  # [m], of the ball that stands for a body without shapes
_UNKNOWN_MASS = 1.0  # [kg]


class PhysicsReader:
    """Reader of the UsdPhysics schemas on the prims of one stage."""

    def __init__(self, transforms: StageTransforms):
        from pxr import UsdGeom, UsdPhysics

        self._schema = UsdPhysics
        self._kilograms = transforms.kilograms
        self._cubic_metres = transforms.unit**3
        self._mesh = UsdGeom.Mesh
        self._collections: dict[Usd.Prim, Usd.CollectionMembershipQuery | None] = {}
        self._owners: dict[tuple[type[Usd.APISchemaBase], Usd.Prim], Usd.Prim | None] = {}

    def collides(self, prim: Usd.Prim) -> bool | None:
        """Return the value of the nearest `CollisionAPI` on a prim or above it; None if there is none.

        One with a `PhysxMeshMergeCollisionAPI` counts for the meshes of its collection only.
        """
        owner = self._nearest(prim, self._schema.CollisionAPI)
        if owner is None:
            return None
        merged = self._merged(owner)
        listed = merged is None or not prim.IsA(self._mesh) or merged.IsPathIncluded(prim.GetPath())
        return listed and bool(value(owner, 'physics:collisionEnabled'))

    def merger(self, prim: Usd.Prim) -> Usd.Prim | None:
        """Return the prim above a mesh whose meshes are one collider by a `PhysxMeshMergeCollisionAPI`.

        None for a mesh with another physics material, as a collider has one only.
        """
        owner = self._nearest(prim, self._schema.CollisionAPI)
        if owner is None or owner == prim or _MERGE_API not in owner.GetPrimTypeInfo().GetAppliedAPISchemas():
            return None
        return owner if bound_material(prim, 'physics') == bound_material(owner, 'physics') else None

    def body_of(self, prim: Usd.Prim) -> Usd.Prim | None:
        """Return the nearest rigid body that a prim belongs to; None for one that is part of the static scene."""
        owner = self._nearest(prim, self._schema.RigidBodyAPI)
        return owner if owner is not None and value(owner, 'physics:rigidBodyEnabled') else None

    def is_kinematic(self, body: Usd.Prim) -> bool:
        """Return True if a rigid body is moved by its author only, not by forces."""
        return bool(value(body, 'physics:kinematicEnabled'))

    def mass(self, prim: Usd.Prim) -> float | None:
        """Return the mass [kg] that a prim is given, None if it follows from densities."""
        return self._kilograms * (value(prim, 'physics:mass') or 0) or None

    def density(self, prim: Usd.Prim, body: Usd.Prim) -> float:
        """Return the density [kg/m3] of a geometry prim of a rigid body."""
        given = value(prim, 'physics:density') or value(body, 'physics:density')
        if not given and (material := bound_material(prim, 'physics')):
            given = value(material, 'physics:density')
        return given * self._kilograms / self._cubic_metres if given else DEFAULT_DENSITY

    def _merged(self, owner: Usd.Prim) -> Usd.CollectionMembershipQuery | None:
        """Return the collection of meshes that are one collider, if there is one that lists anything."""
        from pxr import Usd

        if owner not in self._collections:
            collection = Usd.CollectionAPI(owner, _MERGED)
            listed = (
                _MERGE_API in owner.GetPrimTypeInfo().GetAppliedAPISchemas() and not collection.HasNoIncludedPaths()
            )
            self._collections[owner] = collection.ComputeMembershipQuery() if listed else None
        return self._collections[owner]

    def _nearest(self, prim: Usd.Prim, schema: type[Usd.APISchemaBase]) -> Usd.Prim | None:
        """Return the prim itself or the first one above it that has an API."""
        passed: list[Usd.Prim] = []
        while prim and (schema, prim) not in self._owners and not prim.HasAPI(schema):
            passed.append(prim)
            prim = prim.GetParent()
        owner = self._owners.get((schema, prim), prim or None)
        self._owners |= {(schema, each): owner for each in passed}
        return owner


@dataclass(frozen=True)
class GivenMass:
    """Mass properties of a body in MassAPI, None where not given: in the body's frame, its axes without scale.

    `mass` [kg], `center` `(3,)` [m], `inertia` `(3,)` [kg m2] about the principal axes `axes` `(3, 3)`.
    """

    mass: float | None = None
    center: Array | None = None
    inertia: Array | None = None
    axes: Array | None = None

    def __bool__(self) -> bool:
        return self.mass is not None or self.center is not None or self.inertia is not None or self.axes is not None


@named_by_prim
def check_mass(prim: Usd.Prim) -> None:
    """Raise ValueError naming the prim for an invalid mass or density."""
    for name in 'mass', 'density':
        found = value(prim, f'physics:{name}')
        if found is not None:
            _checked(prim, name, found)


@named_by_prim
def given_mass(prim: Usd.Prim, frame: Frame, transforms: StageTransforms, warnings: FileWarnings) -> GivenMass:
    """Read MassAPI of a body whose frame in the world is `frame`. ValueError naming the prim for invalid values."""
    from pxr import UsdPhysics

    if not prim.HasAPI(UsdPhysics.MassAPI):
        return GivenMass()
    mass = _checked(prim, 'mass', value(prim, 'physics:mass')) * transforms.kilograms
    inertia = _checked(prim, 'diagonalInertia', value(prim, 'physics:diagonalInertia'))
    inertia = inertia * transforms.kilograms * transforms.metres**2
    if np.any(inertia) and not inertia.all():
        raise ValueError(f'{prim.GetPath()}: physics:diagonalInertia must be positive, got {inertia.tolist()} kg m2')
    if 2 * inertia.max() > inertia.sum() * (1 + 1e-5):
        warnings.add('a physically impossible inertia (one moment exceeds the sum of the others) is balanced', prim)
        inertia = np.full(3, inertia.mean())
    quat = value(prim, 'physics:principalAxes')
    quat = np.array([quat.GetReal(), *quat.GetImaginary()])
    if not np.isfinite(quat).all():
        raise ValueError('physics:principalAxes must be finite')
    center = np.array([*value(prim, 'physics:centerOfMass'), 1.0])
    if np.isfinite(center).all():
        center = (frame.inverse() @ Frame((transforms.matrix(prim) @ center)[:3])).position
    elif not (np.isneginf(center[:3]).all() or np.isposinf(center[:3]).all()):
        raise ValueError(f'{prim.GetPath()}: physics:centerOfMass must be finite')
    else:
        center = None
    return GivenMass(
        mass=float(mass) or None,
        center=center,
        inertia=inertia if inertia.all() else None,
        axes=from_quat(quat) if quat.any() else None,
    )


def weigh_shapeless(
    body: mujoco.MjsBody, given: GivenMass, moves: bool, warnings: FileWarnings, prim: Usd.Prim
) -> None:
    """Give mass and inertia to a body without shapes."""
    mass = given.mass
    if mass is None:
        if not moves and given.inertia is None:
            return
        mass = _UNKNOWN_MASS
        warnings.add(f'body without mass and solid shapes weighs {_UNKNOWN_MASS:g} kg', prim)
    inertia = given.inertia
    if inertia is None:
        inertia = np.full(3, 0.4 * mass * BALL_RADIUS**2)
        if moves:
            warnings.add(f'body without inertia and solid shapes has that of a ball of {BALL_RADIUS:g} m', prim)
    _write(body, mass, given.center, inertia, given.axes)


def weigh(body: mujoco.MjsBody, given: GivenMass, model: mujoco.MjModel) -> None:
    """Give mass and inertia to a body; missing values are those of its shapes in the compiled `model`."""
    known = model.body(body.name)
    volume_mass = float(known.mass[0])
    mass = given.mass if given.mass is not None else volume_mass
    center = np.array(known.ipos) if given.center is None else given.center
    if given.inertia is not None:
        return _write(body, mass, center, given.inertia, given.axes)
    axes = from_quat(known.iquat)
    tensor = axes @ np.diag(known.inertia) @ axes.T
    arm = center - known.ipos  # as UsdPhysics: the inertia is moved along with a centre of mass that is given
    tensor += volume_mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return _write(body, mass, center, *principal(tensor * (mass / volume_mass)))


def _write(body: mujoco.MjsBody, mass: float, center: Array | None, inertia: Array, axes: Array | None) -> None:
    body.explicitinertial = True
    body.mass = mass
    body.ipos = np.zeros(3) if center is None else center
    body.inertia = inertia
    body.iquat = to_quat(np.eye(3) if axes is None else axes)


def _checked(prim: Usd.Prim, name: str, found: object) -> Array:
    """Return a number or vector, which must be finite and not negative."""
    numbers = np.asarray(found, float)
    if not np.isfinite(numbers).all() or np.any(numbers < 0):
        raise ValueError(f'{prim.GetPath()}: physics:{name} must be positive and finite, got {numbers.tolist()}')
    return numbers
