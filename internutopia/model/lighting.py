"""Lighting of a scene: a sun, a fill light opposite and a sky where its files have none; shadows that make sense.

Light does not bounce in MuJoCo's renderer: what no light reaches has the ambient light alone. So a light that is shut
out, a sun above a ceiling or a lamp in its shade, casts no shadows and shines through.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.geom_groups import SHOWN_GROUPS

DEFAULT_PREFIX = 'default/'
"""Prefix of the names of added lights."""

_SKY_TOP, _SKY_HORIZON = np.array([0.36, 0.52, 0.72]), np.array([0.86, 0.9, 0.94])
_WHITE = np.ones(3)
_SUN_DISTANCE = 20.0  # [m] from the origin; matters for shadows only
_SUN, _FILL = (0.05, 0.5, -0.86), (-0.62, -0.42, -0.66)  # directions
_SHUT_OUT = 0.25  # share of the points around that a light reaches at most if it is
_OVERHEAD = 0.5  # m: what is nearer than that is a thing, not a ceiling
_DARK = 0.15  # diffuse share of all lights together; the headlight at the camera has 0.4


def light_if_dark(spec: mujoco.MjSpec) -> None:
    """Add lights, and a sky if it has none, to a scene without light: images would show dark shapes on black."""
    if sum(max(light.diffuse) for light in spec.lights if light.active) >= _DARK:
        return
    for name, direction, share in (('sun', _SUN, 0.4), ('fill', _FILL, 0.15)):
        light = spec.worldbody.add_light(
            name=DEFAULT_PREFIX + name, dir=direction, pos=-_SUN_DISTANCE * np.array(direction)
        )
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        light.castshadow = name == 'sun'
        light.diffuse, light.specular, light.ambient = share * _WHITE, share / 5 * _WHITE, 0.1 * _WHITE
    add_missing_sky(spec)


def add_missing_sky(spec: mujoco.MjSpec) -> None:
    """Add a sky if there is none: the background in windows and past the edges would be black."""
    if not any(texture.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX for texture in spec.textures):
        add_sky(spec, f'{DEFAULT_PREFIX}sky')


def add_sky(spec: mujoco.MjSpec, name: str, tint: NDArray[np.float64] = _WHITE) -> None:
    """Add a sky that is bluer at the top, times a tint `(3,)`."""
    sky = spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_SKYBOX)
    sky.builtin = mujoco.mjtBuiltin.mjBUILTIN_GRADIENT
    sky.rgb1, sky.rgb2 = _SKY_TOP * tint, _SKY_HORIZON * tint
    sky.width, sky.height = 256, 1536


def drop_useless_shadows(model: mujoco.MjModel, lights: Iterable[int]) -> None:
    """Disable the shadows of lights that are shut out; `lights` are ids in a model that is not in use yet."""
    lights = [light for light in lights if model.light_castshadow[light]]
    if not lights:
        return
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_camlight(model, data)
    for light in lights:
        position, direction = data.light_xpos[light], data.light_xdir[light]
        if model.light_type[light] == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL:
            distances = [_distance(model, data, point, -direction) for point in _points_inside(model, data)]
            reached = [d < _OVERHEAD for d in distances] or [True]
        else:  # around it, 1 m below
            arms = [np.array([x, y, 1.0]) for x, y in product((-1.0, 0.0, 1.0), repeat=2)]
            distances = [_distance(model, data, position - arm, arm / np.linalg.norm(arm)) for arm in arms]
            reached = [not 0 <= d < np.linalg.norm(arm) for d, arm in zip(distances, arms, strict=True)]
        model.light_castshadow[light] = np.mean(reached) > _SHUT_OUT


def _points_inside(model: mujoco.MjModel, data: mujoco.MjData) -> list[NDArray[np.float64]]:
    """Return points all over the middle of a scene, half as high as its static part."""
    centres = data.geom_xpos[model.body_weldid[model.geom_bodyid] == 0]
    if not len(centres):
        return []
    (x0, y0, _), (x1, y1, _) = np.percentile(centres, (5, 95), axis=0)
    height = np.median(centres[:, 2])
    return [np.array([x, y, height]) for x, y in product(np.linspace(x0, x1, 7), np.linspace(y0, y1, 7))]


def _distance(
    model: mujoco.MjModel, data: mujoco.MjData, start: NDArray[np.float64], direction: NDArray[np.float64]
) -> float:
    """Return the distance [m] to the first visible geom; -1 if there is none."""
    return mujoco.mj_ray(model, data, start, direction, SHOWN_GROUPS, 1, -1, np.zeros(1, np.int32))
