"""Lights and cameras of a stage.

USD gives lights a physical intensity, MuJoCo a share of what makes a surface white. So intensities count only in
relation to each other: the strongest distant light and the strongest lamp are as bright as `_SUN` and `_LAMP`, the
others darker by the square root of the ratio, and all of a kind together are held below a bound. Light does not bounce:
a glow from all around, that of the sky or of the rooms, shows ceilings and rooms without a lamp. However a stage is
lit, images are neither black nor burnt out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from internutopia.model.importers import FileWarnings
from internutopia.model.importers.transforms import Array, Frame, to_quat
from internutopia.model.importers.usd.values import value
from internutopia.model.lighting import add_sky
from internutopia.model.meshes.images import encode_srgb

if TYPE_CHECKING:
    from pxr import Usd

LAMPS = ('SphereLight', 'DiskLight', 'RectLight', 'CylinderLight')
LIGHTS = ('DistantLight', 'DomeLight', 'DomeLight_1', *LAMPS)
"""Prim type names that are lights."""

_SUN, _LAMP = 0.5, 0.35  # diffuse share of the strongest one of each kind
_SUNS, _ALL_LAMPS = 0.7, 1.0  # bounds of all of a kind together
_GLOW, _AMBIENT = 0.05, 0.2  # diffuse and ambient share of what comes from all around, a bit more of it from above
_MAX_LIGHTS = 6  # OpenGL, with which MuJoCo renders, has eight, one of them at the camera, and one for the glow
_SUN_DISTANCE = 20.0  # [m] from the origin; matters for shadows only

_Found = tuple['Usd.Prim', mujoco.MjsBody, Frame, float]  # with its strength


class Lights:
    """Collector of the lights of a stage; `finish` makes them, when all intensities are known."""

    def __init__(self, spec: mujoco.MjSpec, warnings: FileWarnings):
        self._spec = spec
        self._warnings = warnings
        self._found: list[_Found] = []

    def add(self, prim: Usd.Prim, body: mujoco.MjsBody, frame: Frame) -> None:
        """Add a light prim of one of the types `LIGHTS`, at a frame on its body; without intensity, it is left out."""
        strength = _strength(prim)
        if not np.isfinite([strength, *_tint(prim)]).all():
            self._warnings.add('left out, intensity and colour of a light must be finite', prim)
        elif strength > 0:
            self._found.append((prim, body, frame, strength))

    def finish(self) -> None:
        """Add the lights to the spec: distant ones, the domes, then lamps, the strongest first."""
        suns = [found for found in self._found if found[0].GetTypeName() == 'DistantLight']
        lamps = sorted((found for found in self._found if found[0].GetTypeName() in LAMPS), key=lambda f: -f[3])
        count = max(_MAX_LIGHTS - len(suns), 0)
        for prim, *_ in lamps[count:]:
            self._warnings.add(f'only the {count} strongest lamps are lit', prim)
        lamps = lamps[:count]
        for (prim, body, frame, _), share in zip(suns, _shares(suns, _SUN, _SUNS), strict=True):
            light = _light(prim, body, frame, mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, share)
            light.pos = -_SUN_DISTANCE * np.asarray(light.dir)
            light.ambient = 0.05 / len(suns) * _tint(prim)
        dome = next((prim for prim, *_ in self._found if str(prim.GetTypeName()).startswith('DomeLight')), None)
        if dome is not None:
            image = value(dome, 'inputs:texture:file')
            if image is not None and image.path:
                self._warnings.add('the image of a dome light is replaced by a plain sky', dome)
            self._add_glow(str(dome.GetPath()), _tint(dome))
            add_sky(self._spec, str(dome.GetPath()), _tint(dome))
        elif suns or lamps:
            self._add_glow('/glow', np.ones(3))
        for number, ((prim, body, frame, _), share) in enumerate(
            zip(lamps, _shares(lamps, _LAMP, _ALL_LAMPS), strict=True)
        ):
            light = _light(prim, body, frame, mujoco.mjtLightType.mjLIGHT_SPOT, share)
            light.castshadow = number == 0 and not suns  # each shadow costs another pass over all geometry
            light.attenuation = [1.0, 0.0, 0.03]
            light.cutoff, light.exponent = _cone(prim)
            light.ambient = 0.1 / len(lamps) * _tint(prim)
            if prim.GetTypeName() in ('SphereLight', 'CylinderLight') and not _is_shaped(prim):
                light.dir = [0, 0, -1]  # shines everywhere; what it lights most is below it

    def _add_glow(self, name: str, tint: Array) -> None:
        """Add the light that comes from all around."""
        light = self._spec.worldbody.add_light(name=name, dir=[0, 0, -1], pos=[0, 0, _SUN_DISTANCE])
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        light.castshadow = False
        light.diffuse, light.specular, light.ambient = _GLOW * tint, 0 * tint, _AMBIENT * tint


def has_field_of_view(prim: Usd.Prim) -> bool:
    """Return True if a `Camera` has valid numbers for its field of view."""
    numbers = [value(prim, name) for name in ('horizontalAperture', 'verticalAperture', 'focalLength')]
    return bool(np.isfinite(numbers).all() and min(numbers) > 0)


def add_camera(prim: Usd.Prim, body: mujoco.MjsBody, frame: Frame, metres: float) -> None:
    """Add a `Camera` at a frame on its body; `metres` is the unit of the stage.

    Images show the width of its film, whatever their shape, and pixels are square: what Omniverse does, and
    `GfCamera` with `CameraUtilMatchHorizontally`. It faces -z, as MuJoCo's do.
    """
    camera = body.add_camera(name=str(prim.GetPath()), pos=frame.position, quat=to_quat(frame.rotation))
    film = metres / 10 * np.array([value(prim, f'{axis}Aperture') for axis in ('horizontal', 'vertical')])  # [m]
    offsets = [value(prim, f'{axis}ApertureOffset') or 0.0 for axis in ('horizontal', 'vertical')]
    if value(prim, 'projection') == 'orthographic':
        camera.proj = mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC
        camera.fovy = film[1]  # what it sees
        return
    camera.resolution = [1, 1]  # the engine takes a size of the film with one; images have their own
    camera.sensor_size = film
    camera.focal_length = [metres / 10 * value(prim, 'focalLength')] * 2
    camera.principal_length = metres / 10 * np.array([offsets[0], -offsets[1]])


def _light(
    prim: Usd.Prim, body: mujoco.MjsBody, frame: Frame, kind: mujoco.mjtLightType, share: float
) -> mujoco.MjsLight:
    """Return a light on its body, shining along the -z axis of its prim."""
    light = body.add_light(name=str(prim.GetPath()), type=kind, pos=frame.position, dir=-frame.rotation[:, 2])
    light.diffuse, light.specular = share * _tint(prim), share / 3 * _tint(prim)
    return light


def _strength(prim: Usd.Prim) -> float:
    """Return intensity, times the area of a lamp that is not normalized: irradiance in arbitrary units."""
    kind = prim.GetTypeName()
    strength = (value(prim, 'inputs:intensity') or 0.0) * 2 ** (value(prim, 'inputs:exposure') or 0.0)
    if kind not in LAMPS or value(prim, 'inputs:normalize'):
        return strength
    size = {name: value(prim, f'inputs:{name}') or 0.0 for name in ('radius', 'width', 'height', 'length')}
    areas = {
        'SphereLight': 4 * np.pi * size['radius'] ** 2,
        'DiskLight': np.pi * size['radius'] ** 2,
        'RectLight': size['width'] * size['height'],
        'CylinderLight': 2 * np.pi * size['radius'] * size['length'],
    }
    return strength * areas[kind]


def _shares(lights: list[_Found], strongest: float, bound: float) -> Array:
    strengths = np.array([strength for *_, strength in lights])
    shares = strongest * np.sqrt(strengths / strengths.max(initial=1e-300))
    return shares * min(1.0, bound / max(shares.sum(), 1e-300))


def _tint(prim: Usd.Prim) -> Array:
    """Return the colour of a light in sRGB, as those of the surfaces that it is multiplied with."""
    tint = value(prim, 'inputs:color')
    return np.ones(3) if tint is None else encode_srgb(tint)


def _is_shaped(prim: Usd.Prim) -> bool:
    angle = value(prim, 'inputs:shaping:cone:angle')
    return angle is not None and angle < 90


def _cone(prim: Usd.Prim) -> tuple[float, float]:
    """Return the half opening angle [deg] of a lamp, and how fast it gets darker towards the edge."""
    return (float(value(prim, 'inputs:shaping:cone:angle')), 5.0) if _is_shaped(prim) else (89.0, 1.0)
