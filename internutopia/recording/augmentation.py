"""Augmentation: a dataset with newly rendered pictures: with another appearance of the scene, and more cameras."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Self

import mujoco
import numpy as np
from pydantic import model_validator

from internutopia.config.base import BaseCfg, PathStr, Vector
from internutopia.config.yaml_file import read_mapping
from internutopia.model.compilation import compile_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.meshes.images import add_texture, decode_image, resized
from internutopia.recording.dataset import Dataset
from internutopia.recording.episode_writer import EpisodeWriter
from internutopia.recording.export import export
from internutopia.recording.leaves import Leaves, numeric_leaves
from internutopia.recording.replay import Replay, ReplayCamera, config_to_run
from internutopia.recording.streams import CODEC
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


def augment(
    dataset: Dataset,
    folder: str | os.PathLike[str],
    looks: Looks | None = None,
    cameras: Mapping[str, ReplayCamera] | None = None,
    codec: str = CODEC,
    trust: bool = False,
) -> Dataset:
    """Write all episodes of a dataset to a new folder, with the pictures that cameras take now.

    All else is as it was: states, actions, rewards and numbers are equal, to the bit. A picture shows the state of its
    own frame, where that which was recorded may be some steps older (`SimConfig.rendering_interval`).

    Args:
        dataset: what was recorded.
        folder: where to; it must be empty or not be there.
        looks: changes of the appearance; None means none.
        cameras: more cameras, by name; their colour pictures are `scene/sensors/<name>/rgba`.
        codec: encoder of videos, a name of FFmpeg's.
        trust: see `Replay`.

    Raises:
        ValueError: the folder holds something; an episode has pictures of none of these cameras and sensors; `looks`
            names shapes that are not there.
        OSError: the folder or a texture cannot be read or written.
        NoOpenGLError: nothing can be rendered here.
    """
    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        raise ValueError(f'{target} is not empty: write the new dataset to a folder of its own')
    config = config_to_run(dataset, trust)
    facts = {name: value for name, value in dataset.facts.items() if name not in ('version', 'config')}
    if looks is not None:
        facts['looks'] = looks.model_dump(mode='json')
    new = Dataset.create(target, config, facts)
    for index in range(len(dataset)):
        with Replay(dataset, index, looks, trust) as replay:
            _write(replay, new, cameras or {}, codec)
    new = Dataset(target)
    export(new)
    return new


def _write(replay: Replay, new: Dataset, cameras: Mapping[str, ReplayCamera], codec: str) -> None:
    """Write the episode of a replay to a dataset."""
    episode, is_video = replay.episode, new.facts['format'] == 'lerobot'
    path = new.path_of(episode.facts['episode_id'])
    writer = EpisodeWriter(path, episode.facts, new.facts['fps'], is_video, codec)

    def pictures(step: int) -> Leaves:
        replay.put(step)
        seen = _pictures(replay)
        more = {f'scene/sensors/{name}/rgba': replay.render(camera) for name, camera in cameras.items()}
        missing = episode.streams.keys() - seen.keys() - more.keys()
        if missing:
            raise ValueError(
                f'{episode.path} has pictures {min(missing)!r} that no sensor of its robots takes: give the camera '
                'that took them once more'
            )
        return {leaf: seen[leaf] for leaf in seen if leaf in episode.observations} | more

    try:
        writer.save_copy(episode, pictures)
    except BaseException:
        writer.discard()
        raise


def _pictures(replay: Replay) -> Leaves:
    """Return the pictures of the sensors that render, in the current state of the env, by leaf."""
    seen: dict[str, Any] = {
        name: {'sensors': {each: sensor.get_data() for each, sensor in robot.sensors.items() if sensor.renders}}
        for name, robot in replay.runner.slot(0).task.robots.items()
    }
    return numeric_leaves(seen)
