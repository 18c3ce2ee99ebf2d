"""Lights that the client puts into each env, as scenes for Isaac Sim need them."""

# pyright: reportMissingImports=false
# of modules that are not there before they are requested

from __future__ import annotations

from typing import Any

NAMES = ('distant_light', 'up_disk_light', 'down_disk_light')
CEILING, GROUND = 3.0, -3.0  # m


def define_lights(root_path: str) -> list[tuple[Any, float]]:
    """Put lights below a prim; the ops that move them, and the height that each is meant to be at [m]."""
    import omni.usd
    from pxr import Gf, UsdGeom, UsdLux

    stage = omni.usd.get_context().get_stage()
    for name in NAMES:
        stage.RemovePrim(f'/World/{name}')
    sun = UsdLux.DistantLight.Define(stage, f'{root_path}/distant_light')
    sun.CreateIntensityAttr(500)
    lights = []
    for name, height, turn in (('up_disk_light', GROUND, 180), ('down_disk_light', CEILING, 0)):
        lamp = UsdLux.DiskLight.Define(stage, f'{root_path}/{name}')
        lamp.CreateIntensityAttr(5000)
        lamp.CreateColorAttr(Gf.Vec3f(1, 1, 1))
        lamp.CreateRadiusAttr(50.0)
        place = UsdGeom.Xformable(lamp)
        lights.append((place.AddTranslateOp(), height))
        place.AddRotateXYZOp().Set(Gf.Vec3f(turn, 0, 0))
    return lights
