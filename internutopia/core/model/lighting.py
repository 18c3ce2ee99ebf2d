"""Lighting of a scene whose files bring none, or hardly any: a sun, a fill from the other side and a sky."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

_SKY_TOP, _SKY_HORIZON = np.array([0.36, 0.52, 0.72]), np.array([0.86, 0.9, 0.94])
_WHITE = np.ones(3)
_SUN_DISTANCE = 20.0  # [m] from the origin; matters for shadows only
_SUN, _FILL = (0.05, 0.5, -0.86), (-0.62, -0.42, -0.66)  # directions
_DARK = 0.15  # diffuse share of all lights together; the headlight at the camera has 0.4


def light_if_dark(spec: mujoco.MjSpec) -> None:
    """Add lights, and a sky if it has none, to a scene without light: pictures would show dark shapes on black."""
    if sum(max(light.diffuse) for light in spec.lights if light.active) >= _DARK:
        return
    for name, direction, share in (('sun', _SUN, 0.4), ('fill', _FILL, 0.15)):
        light = spec.worldbody.add_light(
            name=f'default/{name}', dir=direction, pos=-_SUN_DISTANCE * np.array(direction)
        )
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        light.castshadow = name == 'sun'
        light.diffuse, light.specular, light.ambient = share * _WHITE, share / 5 * _WHITE, 0.05 * _WHITE
    if not any(texture.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX for texture in spec.textures):
        add_sky(spec, 'default/sky')


def add_sky(spec: mujoco.MjSpec, name: str, tint: NDArray[np.float64] = _WHITE) -> None:
    """Add a sky that is bluer at the top, times a tint `(3,)`."""
    sky = spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_SKYBOX)
    sky.builtin = mujoco.mjtBuiltin.mjBUILTIN_GRADIENT
    sky.rgb1, sky.rgb2 = _SKY_TOP * tint, _SKY_HORIZON * tint
    sky.width, sky.height = 256, 1536
