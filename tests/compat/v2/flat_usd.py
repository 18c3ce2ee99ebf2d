"""Writer of a flat of one room as USD, in metres or centimetres: a floor, walls around it, and a red pillar."""

from __future__ import annotations

from pathlib import Path

# lowest and highest corner of each thing [m], and its colour
PILLAR = ((2.75, 0.1, 0.0), (3.15, 0.5, 1.7))
NORTH, SOUTH, WEST, EAST = 3.0, -3.0, -1.0, 7.0  # m, faces of the walls
WALL_HEIGHT = 1.2  # m, lower than the camera above the robot
FRICTION = 1.0  # a robot that walks slips on less than the policy was trained on
_GREY, _WHITE, _RED = (0.4, 0.4, 0.4), (0.8, 0.8, 0.8), (0.9, 0.05, 0.05)
_THINGS = {
    'floor': ((WEST - 0.1, SOUTH - 0.1, -0.1), (EAST + 0.1, NORTH + 0.1, 0.0), _GREY),
    'north_wall': ((WEST, NORTH, 0.0), (EAST, NORTH + 0.1, WALL_HEIGHT), _WHITE),
    'south_wall': ((WEST, SOUTH - 0.1, 0.0), (EAST, SOUTH, WALL_HEIGHT), _WHITE),
    'west_wall': ((WEST - 0.1, SOUTH, 0.0), (WEST, NORTH, WALL_HEIGHT), _WHITE),
    'east_wall': ((EAST, SOUTH, 0.0), (EAST + 0.1, NORTH, WALL_HEIGHT), _WHITE),
    'pillar': (*PILLAR, _RED),
}


def write_flat(path: Path, metres_per_unit: float) -> str:
    """Write it with lengths in this unit; returns the path."""
    from pxr import Gf, Usd, UsdGeom, UsdPhysics, UsdShade

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, metres_per_unit)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, '/flat').GetPrim())
    ground = UsdShade.Material.Define(stage, '/flat/ground')
    rubs = UsdPhysics.MaterialAPI.Apply(ground.GetPrim())
    rubs.CreateStaticFrictionAttr(FRICTION)
    rubs.CreateDynamicFrictionAttr(FRICTION)
    for name, (low, high, colour) in _THINGS.items():
        cube = UsdGeom.Cube.Define(stage, f'/flat/{name}')
        cube.CreateSizeAttr(1.0)
        low, high = (Gf.Vec3d(corner) / metres_per_unit for corner in (low, high))
        cube.AddTranslateOp().Set((low + high) / 2)
        cube.AddScaleOp().Set(Gf.Vec3f(high - low))
        cube.CreateDisplayColorAttr([Gf.Vec3f(colour)])
        UsdPhysics.CollisionAPI.Apply(cube.GetPrim())
        UsdShade.MaterialBindingAPI.Apply(cube.GetPrim()).Bind(ground, materialPurpose='physics')
    stage.Save()
    return str(path)
