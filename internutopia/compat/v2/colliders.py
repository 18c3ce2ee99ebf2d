"""Colliders of prims in a USD stage of your own, to be written to a file that is then a scene, a robot or an object.

A scene that runs here is compiled and is no stage: what is changed in its file counts from the next `Env` on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pxr import Usd


def set_collider(item: Usd.Prim, approx: str | None = None, init_state: bool = True) -> None:
    """Make colliders of all meshes at and below a prim; see `set_collider_`."""
    for mesh in _meshes(item):
        set_collider_(mesh, approx, init_state)


def set_collider_(item: Usd.Prim, approx: str | None = None, init_state: bool = True) -> None:
    """Make a collider of a mesh.

    Args:
        item: the prim of the mesh.
        approx: what it collides as, a token of `physics:approximation` such as `'convexHull'`; None leaves that as it
            is, which means its faces if nothing was said.
        init_state: whether the collider is active.
    """
    from pxr import UsdPhysics

    UsdPhysics.CollisionAPI.Apply(item).CreateCollisionEnabledAttr(init_state)
    if approx is not None:
        UsdPhysics.MeshCollisionAPI.Apply(item).CreateApproximationAttr(approx)


def activate_collider(item: Usd.Prim) -> None:
    """Switch on the colliders of all meshes at and below a prim."""
    for mesh in _colliders(item):
        activate_collider_(mesh)


def activate_collider_(item: Usd.Prim) -> None:
    """Switch on the collider of a mesh. ValueError if it is none."""
    _set_enabled(item, True)


def deactivate_collider(item: Usd.Prim) -> None:
    """Switch off the colliders of all meshes at and below a prim."""
    for mesh in _colliders(item):
        deactivate_collider_(mesh)


def deactivate_collider_(item: Usd.Prim) -> None:
    """Switch off the collider of a mesh. ValueError if it is none."""
    _set_enabled(item, False)


def remove_collider(item: Usd.Prim) -> None:
    """Make no colliders of all meshes at and below a prim."""
    for mesh in _colliders(item):
        remove_collider_(mesh)


def remove_collider_(item: Usd.Prim) -> None:
    """Make no collider of a mesh."""
    from pxr import UsdPhysics

    item.RemoveAPI(UsdPhysics.MeshCollisionAPI)
    item.RemoveAPI(UsdPhysics.CollisionAPI)


def _set_enabled(item: Usd.Prim, enabled: bool) -> None:
    from pxr import UsdPhysics

    if not item.HasAPI(UsdPhysics.CollisionAPI):
        raise ValueError(f'{item.GetPath()} is no collider; set_collider makes it one')
    UsdPhysics.CollisionAPI(item).CreateCollisionEnabledAttr(enabled)


def _meshes(item: Usd.Prim) -> list[Usd.Prim]:
    from pxr import Usd, UsdGeom

    return [prim for prim in Usd.PrimRange(item) if prim.IsA(UsdGeom.Mesh)]


def _colliders(item: Usd.Prim) -> list[Usd.Prim]:
    from pxr import UsdPhysics

    return [mesh for mesh in _meshes(item) if mesh.HasAPI(UsdPhysics.CollisionAPI)]
