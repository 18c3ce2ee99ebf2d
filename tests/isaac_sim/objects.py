"""`isaacsim.core.api.objects`: cuboids."""

from __future__ import annotations

from typing import Any

from pxr import Gf, Usd, UsdGeom, UsdPhysics

from isaac_sim import stage as stages
from isaac_sim.recorded import class_standing_for
from isaac_sim.simulator import current


@class_standing_for('isaacsim.core.api.objects.VisualCuboid')
class VisualCuboid:
    def __init__(
        self,
        prim_path: str,
        name: str = 'visual_cube',
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        color: Any = None,
        size: float | None = None,
    ):
        self.prim_path, self.name = prim_path, name
        self.prim = define_cube(prim_path, 1.0 if size is None else size, color)
        if position is not None:
            stages.set_world_pose(self.prim, position, orientation)
        stages.set_local_pose(self.prim, translation, orientation if position is None else None, scale)


@class_standing_for('isaacsim.core.api.objects.FixedCuboid')
class FixedCuboid(VisualCuboid):
    def __init__(
        self,
        prim_path: str,
        name: str = 'fixed_cube',
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        color: Any = None,
        size: float | None = None,
    ):
        super().__init__(prim_path, name, position, translation, orientation, scale, color=color, size=size)
        UsdPhysics.CollisionAPI.Apply(self.prim)


@class_standing_for('isaacsim.core.api.objects.DynamicCuboid')
class DynamicCuboid(FixedCuboid):
    def __init__(
        self,
        prim_path: str,
        name: str = 'dynamic_cube',
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        color: Any = None,
        size: float | None = None,
        mass: float | None = None,
        density: float | None = None,
    ):
        super().__init__(prim_path, name, position, translation, orientation, scale, color=color, size=size)
        make_rigid(self.prim, 0.02 if mass is None else mass, density)  # what nobody gives a mass is light


def define_cube(path: str, size: float, color: Any) -> Usd.Prim:
    """A cube on the stage."""
    cube = UsdGeom.Cube.Define(current().stage, path)
    cube.CreateSizeAttr(float(size))
    if color is not None:
        cube.CreateDisplayColorAttr([Gf.Vec3f(*(float(value) for value in color))])
    return cube.GetPrim()


def make_rigid(prim: Usd.Prim, mass: Any, density: Any) -> None:
    """Let a prim move under physics; mass [kg] or density [kg/m3]."""
    UsdPhysics.RigidBodyAPI.Apply(prim)
    api = UsdPhysics.MassAPI.Apply(prim)
    if mass is not None:
        api.CreateMassAttr(float(mass))
    if density is not None:
        api.CreateDensityAttr(float(density))
