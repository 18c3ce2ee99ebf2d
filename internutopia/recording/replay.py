"""Replay: an episode of a dataset once more, by its states, bit for bit, or by its actions.

from internutopia.recording import Dataset, Replay, ReplayCamera

with Replay(Dataset('out/dataset'), 3) as replay:
    for step in replay.states():
        image = replay.render(ReplayCamera(position=(2, 0, 1), target=(0, 0, 0.2)))
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Self

import mujoco
import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from internutopia.config import Config
from internutopia.config.base import BaseCfg, PathStr, Resolution, Vector
from internutopia.config.yaml_file import read_mapping
from internutopia.core.runner.env_cameras import EnvCameras
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.scene.scene import env_path
from internutopia.core.vec_env import Env
from internutopia.engines.base import PhysicsState
from internutopia.engines.batched.world import BatchedWorld
from internutopia.model.compilation import compile_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.meshes.images import add_texture, decode_image, resized
from internutopia.recording.dataset import Dataset
from internutopia.rl.policy import check_names_no_program
from internutopia.rl.vector_env import VectorEnv
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
    """Image on them: once per metre on planes, by texture coordinates on meshes, else once on each side."""


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
    """True if objects cast shadows, in images of the quality `full`."""

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
            ValueError: there are no shapes of a name, or a texture is no image.
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
        if not flat:  # a cube with the image on each of its sides
            side = min(pixels.shape[:2])
            pixels = np.tile(resized(pixels, (side, side)), (6, 1, 1))
        add_texture(spec, name, pixels, mujoco.mjtTexture.mjTEXTURE_2D if flat else mujoco.mjtTexture.mjTEXTURE_CUBE)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
    return name


class ReplayCamera(BaseCfg):
    """A camera to replay an episode with: in its own place, or one of the scene."""

    position: Vector | None = None
    """Position of the camera, m, env frame."""
    target: Vector | None = None
    """Point that it is aimed at, m, env frame."""
    prim_path: str | None = None
    """Instead of both: a camera of the scene, below the env (`robots/World/h1/logo_link/Camera`)."""
    resolution: Resolution = (640, 480)
    """Width and height of images, pixels."""

    @model_validator(mode='after')
    def _check_place(self) -> Self:
        given = tuple(place is not None for place in (self.position, self.target, self.prim_path))
        if given not in ((True, True, False), (False, False, True)):
            raise ValueError('a camera has position and target, or else prim_path')
        return self

    @classmethod
    def read(cls, path: Any) -> ReplayCamera:
        """Read a camera from a YAML file. OSError or ValueError, naming the file, if it is none."""
        return cls.model_validate(read_mapping(path))


@dataclass(frozen=True)
class Drift:
    """Deviation of an episode when its actions were made again from its first state.

    Attributes:
        identical: the number of steps after which the state was the same, bit for bit, before it was another one.
        errors: largest difference of a position coordinate (of joints [rad or m], of free bodies [m] or of their
            quaternions) after each step, `(steps,)`.
    """

    identical: int
    errors: NDArray[np.float64]


class Replay:
    """An env with an episode of a dataset; a context manager. Its classes have to be registered.

    Args:
        dataset: where the episode is.
        index: which one, counted from 0.
        looks: changes of the appearance in its images; None means none.
        trust: whether TorchScript files may run that the dataset names (`docs/security.md`).

    Attributes:
        episode: what was recorded.
        env: the env, a `vec_env.Env` or an `rl.VectorEnv`, as when it was recorded.
        runner: what steps it.

    Raises:
        IndexError: there is no such episode.
        ValueError: its file is damaged, or the models are others than those that were recorded; `looks` names shapes
            that are not there; the dataset names a program, and is not trusted.
        NotImplementedError: it was recorded on an engine whose states cannot be put back.
    """

    def __init__(self, dataset: Dataset, index: int, looks: Looks | None = None, trust: bool = False):
        self.episode = dataset[index]
        whole = config_to_run(dataset, trust)
        changes: dict[str, Any] = {  # to a run of this episode, over and over
            'env_num': 1,
            'task_configs': [whole.task_configs[self.episode.facts['task_index']]],
            'episode_order': 'cycle',
            'metrics_save_path': None,
            'resume': False,
        }
        config = whole.model_copy(update=changes)
        self.env = VectorEnv(config, autoreset_mode='Disabled') if dataset.facts['api'] == 'array' else Env(config)
        self.runner: SimulatorRunner = self.env.core.runner if isinstance(self.env, VectorEnv) else self.env.runner
        try:
            world = self.runner.world
            if not isinstance(world, BatchedWorld):
                raise NotImplementedError(f'episodes cannot be replayed on {type(world).__name__}')
            self._world = world
            self._start()
            self._beside = EnvCameras(self.runner, None, (640, 480))
            if looks is not None:
                world.rendered_model = functools.cache(lambda scene: looks.model(scene, world.timestep))
                world.rendered_model(world.scene(0))
        except BaseException:
            self.close()
            raise

    @property
    def step_dt(self) -> float:
        """Time from one state to the next [s]."""
        return self.env.core.step_dt if isinstance(self.env, VectorEnv) else self.runner.world.step_dt

    def put(self, step: int) -> None:
        """Put the env into the state after so many steps.

        ValueError if the model is not the recorded one, or the state is not restored bit for bit.
        """
        state = self.episode.states[step]
        problem = self._world.check_compatible(0, state)
        if problem is not None:
            raise ValueError(f'{self.episode.path}, state {step}: {problem}')
        self._world.set_state(0, state)
        self.runner.batches.forget(0)
        if not _same(self._world.get_state(0), state):
            raise ValueError(f'{self.episode.path}, state {step}: the engine does not restore it bit for bit')

    def states(self) -> Iterator[int]:
        """Iterate over all states; yields the number of steps before each. Watchers of the runner see them as steps."""
        for step in range(len(self.episode.states)):
            for watcher in self.runner.watchers:
                watcher.on_step_start()
            self.put(step)
            self.runner.steps[0] = step
            for watcher in self.runner.watchers:
                watcher.on_change()
            yield step

    def repeat_actions(self) -> Drift:
        """Make the steps of the episode again, from its first state with its actions.

        ValueError if its actions could not be recorded.
        """
        if not self.episode.facts['actions']['complete']:
            raise ValueError(f'{self.episode.path}: its actions are not only numbers and text, and were not recorded')
        self._start()
        self.put(0)
        reached: list[tuple[PhysicsState, NDArray[np.float64]]] = []
        for action in self.episode.actions:
            if isinstance(self.env, VectorEnv):
                self.env.step(np.array([action], np.float32))
            else:
                self.env.step([action])
            reached.append((self._world.get_state(0), self._positions()))
            if not self.runner.running[0]:
                break
        errors = np.zeros(len(reached))
        identical = True
        count = 0
        for step, (state, positions) in enumerate(reached, start=1):
            self.put(step)
            errors[step - 1] = np.abs(positions - self._positions()).max(initial=0.0)
            identical = identical and _same(state, self.episode.states[step])
            count += identical
        return Drift(count, errors)

    def render(self, camera: ReplayCamera | None = None) -> NDArray[np.uint8]:
        """Render the state, RGB `(height, width, 3)`; without a camera, `(480, 640, 3)`, next to the first robot.

        ValueError if there is no such camera, NoOpenGLError if nothing can be rendered here.
        """
        if camera is None:
            return self._beside.render(0)
        if camera.prim_path is not None:
            return self.runner.render(f'{env_path(0)}/{camera.prim_path}', camera.resolution)
        return self.runner.render((camera.position, camera.target), camera.resolution)

    def close(self) -> None:
        """Free everything."""
        self.env.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self.env.reset()
        self._world.noise_keys[0] = self.episode.facts['noise_key']

    def _positions(self) -> NDArray[np.float64]:
        return self._world.full_state(0)[1 : 1 + self._world.scene(0).model.nq]


def config_to_run(dataset: Dataset, trust: bool) -> Config:
    """Return the config of a dataset. ValueError if it names a program, and is not trusted."""
    config = dataset.config()
    if not trust:
        check_names_no_program(config.model_dump(mode='json'), dataset.folder)
    return config


def _same(one: PhysicsState, other: PhysicsState) -> bool:
    """Return whether states are equal, bit for bit."""
    return one.model == other.model and {name: array.tobytes() for name, array in one.arrays.items()} == {
        name: array.tobytes() for name, array in other.arrays.items()
    }
