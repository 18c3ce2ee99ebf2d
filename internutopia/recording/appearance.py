"""Appearance: other colours, textures and lights for a scene, whose geometry and motion stay the same."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Self

import mujoco
import numpy as np
from pydantic import model_validator

from internutopia.config.base import BaseCfg
from internutopia.config.fields import PathStr, Vector
from internutopia.config.yaml_file import read_mapping
from internutopia.model.compilation import compile_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.meshes.images import add_texture, decode_image, resized
from internutopia.util import did_you_mean

_FLAT = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_MESH)
_SHINE = 0.2  # specular part of a light, relative to its diffuse one
_PER_METRE = (2.0, 2.0)  # a repeat of MuJoCo's is 2 m
_NO_COLOUR = (0.5, 0.5, 0.5, 1.0)  # of a geom whose material counts
_LIGHTS = {
    'directional': mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
    'point': mujoco.mjtLightType.mjLIGHT_POINT,
    'spot': mujoco.mjtLightType.mjLIGHT_SPOT,
}


class GeomLook(BaseCfg):
    """Changed appearance of shapes."""

    names: str
    """A name in the model with `*` for anything, of shapes or of the bodies that they are on (`scene/walls`,
    `robots/jetbot/*`, `objects/cube`)."""
    color: Vector = (1.0, 1.0, 1.0)
    """Red, green and blue, 0 to 1; a texture is multiplied with it."""
    texture: PathStr | None = None
    """A picture on them: once per metre on planes, by texture coordinates on meshes, else once on each side."""


class Light(BaseCfg):
    """A light."""

    type: Literal['directional', 'point', 'spot'] = 'directional'
    """A sun, a bulb, or a lamp with a cone of 45 degrees to each side."""
    position: Vector
    """Position of the light, m, env frame; of a sun, the direction alone counts."""
    target: Vector = (0.0, 0.0, 0.0)
    """Point that it shines at, m, env frame."""
    color: Vector = (0.6, 0.6, 0.6)
    """Red, green and blue, 0 to 1."""
    shadows: bool = True
    """True if things cast shadows, in pictures of the quality `full`."""

    @model_validator(mode='after')
    def _check_direction(self) -> Self:
        if self.position == self.target:
            raise ValueError(f'position and target of a light are the same, {self.position}: it has no direction')
        return self


class Looks(BaseCfg):
    """Changes of the appearance of a scene in a replay."""

    geoms: list[GeomLook] = []
    """Shapes with another appearance; of two that name the same shape, the last one counts."""
    lights: list[Light] | None = None
    """Lights in place of all others but the dim one that every camera carries; None means the lights of the scene."""

    @classmethod
    def read(cls, path: Any) -> Looks:
        """Read them from a YAML file, textures from its folder. OSError or ValueError that names the file."""
        looks = cls.model_validate(read_mapping(path))
        for look in looks.geoms:
            if look.texture is not None:
                look.texture = str(Path(path).resolve().parent / look.texture)
        return looks

    def model(self, scene: CompiledScene, timestep: float) -> mujoco.MjModel:
        """Return the model of a scene with these changes; it takes the same states.

        Raises:
            ValueError: there are no shapes of a name, or a texture is no picture.
            OSError: a texture cannot be read.
        """
        return compile_scene(scene.source, timestep, edit=self._apply).model

    def _apply(self, spec: mujoco.MjSpec) -> None:
        names = {name for geom in spec.geoms for name in (geom.name, geom.parent.name) if name}
        for number, look in enumerate(self.geoms):
            geoms = [
                geom
                for geom in spec.geoms
                if any(fnmatchcase(name, look.names) for name in (geom.name, geom.parent.name))
            ]
            if not geoms:
                raise ValueError(f'no shape has a name like {look.names!r}; {did_you_mean(look.names, names)}')
            for flat in (True, False):
                alike = [geom for geom in geoms if (geom.type in _FLAT) is flat]
                if alike:
                    material = _add_material(spec, f'looks/{number}/{flat}', look, flat)
                    for geom in alike:
                        geom.material = material
                        geom.rgba = [*_NO_COLOUR[:3], geom.rgba[3]]
        if self.lights is not None:
            for light in spec.lights:
                light.active = False
        for light in self.lights or []:
            position, target = np.array(light.position), np.array(light.target)
            added = spec.worldbody.add_light(pos=position, dir=target - position, type=_LIGHTS[light.type])
            added.diffuse, added.specular, added.castshadow = light.color, _SHINE * np.array(light.color), light.shadows


def _add_material(spec: mujoco.MjSpec, name: str, look: GeomLook, flat: bool) -> str:
    """Add a material for planes, height fields and meshes (`flat`), or for other shapes; returns its name."""
    material = spec.add_material(name=name, rgba=[*look.color, 1.0], texuniform=True, texrepeat=_PER_METRE)
    if look.texture is not None:
        try:
            pixels = decode_image(Path(look.texture).read_bytes())[..., :3]
        except ValueError as error:
            raise ValueError(f'{look.texture}: {error}') from None
        if not flat:  # a cube with the picture on each of its sides
            side = min(pixels.shape[:2])
            pixels = np.tile(resized(pixels, (side, side)), (6, 1, 1))
        add_texture(spec, name, pixels, mujoco.mjtTexture.mjTEXTURE_2D if flat else mujoco.mjtTexture.mjTEXTURE_CUBE)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
    return name
