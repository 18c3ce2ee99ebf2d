"""Schemas of PhysX as scripts ask USD for them, which has no plugin for them."""

from __future__ import annotations

from typing import Any

import pytest

from internutopia import compat

Usd, UsdPhysics = (pytest.importorskip(f'pxr.{name}') for name in ('Usd', 'UsdPhysics'))


@pytest.mark.usefixtures('stand_ins')
def test_prims_are_asked_for_schemas_as_for_those_of_usd():
    from pxr import PhysxSchema  # pyright: ignore[reportAttributeAccessIssue]

    stage = Usd.Stage.CreateInMemory()
    prim: Any = stage.DefinePrim('/cube_1', 'Cube')
    assert not prim.HasAPI(PhysxSchema.PhysxRigidBodyAPI) and prim.CanApplyAPI(PhysxSchema.PhysxRigidBodyAPI)
    UsdPhysics.RigidBodyAPI.Apply(prim)
    assert prim.ApplyAPI(PhysxSchema.PhysxRigidBodyAPI)
    assert prim.HasAPI(PhysxSchema.PhysxRigidBodyAPI) and not prim.HasAPI(PhysxSchema.PhysxCollisionAPI)
    assert prim.GetAppliedSchemas() == ['PhysicsRigidBodyAPI', 'PhysxRigidBodyAPI']
    assert prim.HasAPI(UsdPhysics.RigidBodyAPI) and not prim.HasAPI(UsdPhysics.CollisionAPI)
    assert prim.RemoveAPI(PhysxSchema.PhysxRigidBodyAPI)
    assert prim.GetAppliedSchemas() == ['PhysicsRigidBodyAPI']


def test_usd_is_as_it_was_after_uninstalling():
    def methods() -> list[Any]:
        return [getattr(Usd.Prim, name) for name in dir(Usd.Prim)]

    before = methods()
    for _ in range(2):
        assert compat.install()
        from pxr import PhysxSchema  # pyright: ignore[reportAttributeAccessIssue]

        stage = Usd.Stage.CreateInMemory()
        prim: Any = stage.DefinePrim('/cube', 'Cube')
        PhysxSchema.PhysxRigidBodyAPI.Apply(prim)
        assert prim.HasAPI(PhysxSchema.PhysxRigidBodyAPI) and prim.GetAppliedSchemas() == ['PhysxRigidBodyAPI']
        compat.uninstall()
        assert methods() == before and prim.GetAppliedSchemas() == []
