"""Colours and lights of a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from internutopia.core.scene.usd.linear import Array
from internutopia.core.scene.usd.shapes import value

if TYPE_CHECKING:
    from pxr import Usd

DEFAULT_COLOR = (0.7, 0.7, 0.72)
_SUN_DISTANCE = 20.0  # [m] from the origin; matters for shadows only
_SKY_TOP, _SKY_HORIZON = np.array([0.36, 0.52, 0.72]), np.array([0.86, 0.9, 0.94])


def color(prim: Usd.Prim) -> tuple[float, float, float, float]:
    """RGBA of a geometry prim: of its material, else its displayColor, else a light grey."""
    rgb, opacity = _material_color(prim)
    if rgb is None:
        rgb = _mean_primvar(prim, 'displayColor')
        opacity = _mean_primvar(prim, 'displayOpacity')
    r, g, b = np.clip(DEFAULT_COLOR if rgb is None else rgb, 0, 1)
    return float(r), float(g), float(b), float(1.0 if opacity is None else np.clip(opacity, 0, 1))


def add_light(spec: mujoco.MjSpec, prim: Usd.Prim, rotation: Array) -> None:
    """Add a `DistantLight`, which shines along its -z axis, or a `DomeLight`, the sky and its glow, to a spec."""
    tint = np.asarray(value(prim, 'inputs:color'), float)
    distant = prim.GetTypeName() == 'DistantLight'
    direction = -rotation[:, 2] if distant else np.array([0.0, 0.0, -1.0])
    light = spec.worldbody.add_light(name=str(prim.GetPath()), dir=direction, pos=-_SUN_DISTANCE * direction)
    light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    if distant:
        light.diffuse, light.specular, light.ambient = 0.6 * tint, 0.2 * tint, 0.05 * tint
        return
    light.castshadow = False
    light.diffuse, light.specular, light.ambient = 0.1 * tint, 0 * tint, 0.25 * tint
    sky = spec.add_texture(name=str(prim.GetPath()), type=mujoco.mjtTexture.mjTEXTURE_SKYBOX)
    sky.builtin = mujoco.mjtBuiltin.mjBUILTIN_GRADIENT
    sky.rgb1, sky.rgb2 = _SKY_TOP * tint, _SKY_HORIZON * tint
    sky.width, sky.height = 256, 1536


def _material_color(prim: Usd.Prim) -> tuple[Array | None, float | None]:
    """Diffuse colour and opacity of the bound material, if they are plain values."""
    from pxr import UsdShade

    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    if not material:
        return None, None
    shader = material.ComputeSurfaceSource()[0] or material.ComputeSurfaceSource('mdl')[0]
    if not shader:
        return None, None
    found = {}
    for key in ('diffuseColor', 'diffuse_color_constant', 'opacity'):  # the second one is OmniPBR's
        source = shader.GetInput(key)
        if source and (attributes := source.GetValueProducingAttributes()):
            is_input = UsdShade.Utils.GetType(attributes[0].GetName()) == UsdShade.AttributeType.Input
            found[key] = attributes[0].Get() if is_input else None  # else it comes from a texture
    rgb = found.get('diffuseColor', found.get('diffuse_color_constant'))
    return (None if rgb is None else np.asarray(rgb, float)), found.get('opacity')


def _mean_primvar(prim: Usd.Prim, name: str) -> Array | None:
    """A primvar of the prim or one above it; values that vary over the surface are averaged."""
    from pxr import Usd, UsdGeom

    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(name)
    values = primvar.ComputeFlattened(Usd.TimeCode.EarliestTime()) if primvar else None
    return np.mean(np.asarray(values, float), axis=0) if values else None
