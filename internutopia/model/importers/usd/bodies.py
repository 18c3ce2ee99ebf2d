"""Bodies of a stage: the prims that move, those that collide, and their masses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from internutopia.model.importers.usd.values import value

if TYPE_CHECKING:
    from pxr import Usd

    from internutopia.model.importers.usd.stage import StageTransforms

DEFAULT_DENSITY = 1000.0  # [kg/m3], as UsdPhysics has it
_MERGE_API, _MERGED = 'PhysxMeshMergeCollisionAPI', 'collisionmeshes'  # of PhysX, and the name of its collection


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
        return owner if self._material(prim) == self._material(owner) else None

    def body_of(self, prim: Usd.Prim) -> Usd.Prim | None:
        """Return the nearest rigid body that a prim belongs to; None for one that is part of the static scene."""
        owner = self._nearest(prim, self._schema.RigidBodyAPI)
        return owner if owner is not None and value(owner, 'physics:rigidBodyEnabled') else None

    def is_body(self, prim: Usd.Prim) -> bool:
        """Return True for a rigid body."""
        return self.body_of(prim) == prim

    def is_kinematic(self, body: Usd.Prim) -> bool:
        """Return True if a rigid body is moved by its author only, not by forces."""
        return bool(value(body, 'physics:kinematicEnabled'))

    def mass(self, prim: Usd.Prim) -> float | None:
        """Return the mass [kg] that a prim is given, None if it follows from densities."""
        return self._kilograms * (value(prim, 'physics:mass') or 0) or None

    def density(self, prim: Usd.Prim, body: Usd.Prim) -> float:
        """Return the density [kg/m3] of a geometry prim of a rigid body."""
        given = value(prim, 'physics:density') or value(body, 'physics:density') or self._material_density(prim)
        return given * self._kilograms / self._cubic_metres if given else DEFAULT_DENSITY

    def _material_density(self, prim: Usd.Prim) -> float:
        material = self._material(prim)
        return value(material, 'physics:density') or 0.0 if material else 0.0

    def _material(self, prim: Usd.Prim) -> Usd.Prim | None:
        """Return the physics material of a prim, which may be bound to one above it."""
        from pxr import UsdShade

        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial('physics')
        bound = material.GetPrim() if material else None
        return bound if bound and bound.HasAPI(self._schema.MaterialAPI) else None

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
