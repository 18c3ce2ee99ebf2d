"""Env scene: one env's part of the world, for extension classes, addressed by prim paths.

Prim paths: the env is `/World/env_<id>`, its scene `.../scene`, its robots and objects where their configs say. The
paths are names here; on Isaac Sim they are prims.

A path is looked up in the envs of the `Env` or `VectorEnv` whose code is running, in whatever thread. Code outside of
all of them is understood as long as one of them alone has an env of that number.
"""

from __future__ import annotations

import gc
import itertools
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.base import World
from internutopia.engines.views import CameraView
from internutopia.model.spec import JointSpec, ObjectSpec, SceneSpec
from internutopia.util import did_you_mean
from internutopia.util.arrays import to_host
from internutopia.util.errors import EnvValueError
from internutopia.util.rotations import quat_to_matrix

if TYPE_CHECKING:  # it loads MuJoCo, which clients of a server need not have
    from internutopia.model.part_boxes import PartBox

_ENV_PATH = re.compile(r'^/World/env_(\d+)(/|$)')


class AmbiguousPathError(KeyError):
    """A prim path that is in several Envs of this process."""


class EnvScenes:
    """Scenes of one runner.

    Attributes:
        loaded: those that are loaded, by env id.
        after_physics: called when physics was stepped or episodes were loaded.
    """

    def __init__(self) -> None:
        self.loaded: dict[int, IScene] = {}
        self.after_physics: list[Callable[[], None]] = []
        _opened[next(_numbers)] = self

    @staticmethod
    def candidates() -> list[EnvScenes]:
        """Return the scenes of the Env whose code is running; outside of that, of all Envs, in order of creation."""
        running = _running.get()
        if running is not None:
            return [running]
        # a list of references is made at once: another thread may open an Env meanwhile
        return [scenes for reference in _opened.valuerefs() if (scenes := reference()) is not None]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Look up prim paths of this thread in these scenes for the duration of the context."""
        token = _running.set(self)
        try:
            yield
        finally:
            _running.reset(token)


_running: ContextVar[EnvScenes | None] = ContextVar('running_scenes', default=None)
_opened: weakref.WeakValueDictionary[int, EnvScenes] = weakref.WeakValueDictionary()  # in the order they were made in
_numbers = itertools.count()


def env_path(env_id: int) -> str:
    """Return the prim path of an env."""
    return f'/World/env_{env_id}'


class IScene:
    """Scene of one env; handles to its contents are made by the env (`core.robot.env_scene`).

    Attributes:
        world: the physics world.
        env_id: the env, or `...` for the scene that a batched class sees, all envs at once.
        model: its spec, with the names in the user's config; empty in the scene of a batched class.
        root_path: prim path of the env.
        robot_paths: robot name (as in the user's config) by absolute prim path.
        object_paths: object name by absolute prim path.
        handles_in_world: see `Conventions`.
        adds_by_config: True while the class of an object adds it, by its config, whose position is in the env frame.
        batches: the batched robots of the world, which its robots join.
    """

    batches: Any

    def __init__(self, world: World, env_id: Any):
        self.world = world
        self.env_id = env_id
        self.model = SceneSpec()
        self.root_path = env_path(env_id) if isinstance(env_id, int) else '/World/env_*'
        self.robot_paths: dict[str, str] = {}
        self.object_paths: dict[str, str] = {}
        self.handles_in_world = False
        self.adds_by_config = False

    @property
    def lead_env(self) -> int:
        """An env of this scene; the models of its robots represent those of all its envs."""
        return self.env_id

    @classmethod
    def create(cls, simulator_type: str = 'isaac_sim') -> IScene:
        """Raise a RuntimeError: scenes are made by the env."""
        raise RuntimeError('scenes are created by the Env; a class receives its own as the argument `scene`')

    @classmethod
    def at(cls, prim_path: str) -> Any:
        """Return the scene of the env that a prim path lies in.

        KeyError if there is no such env, or (AmbiguousPathError), outside of the code that an `Env` runs, if several of
        them have it.
        """
        match = _ENV_PATH.match(prim_path)
        env_id = int(match[1]) if match else -1
        places = _places(env_id)
        if len(places) > 1:
            places.clear()
            gc.collect()  # of Envs that were forgotten without being closed, none is meant
            places = _places(env_id)
        if not places:
            raise KeyError(f'prim path {prim_path!r} is in no loaded env (expected /World/env_<id>/...)')
        if len(places) > 1:
            raise AmbiguousPathError(
                f'prim path {prim_path!r} is in {len(places)} Envs of this process: select one with '
                'env.runner.get_obj(name, env_id) or the robots of its env.runner.current_tasks, or close the others'
            )
        return places[0].loaded[env_id]

    @staticmethod
    def all() -> list[Any]:
        """Return the scenes of the Env whose code is running; outside of that, of all Envs, in order of creation."""
        return [scene for scenes in EnvScenes.candidates() for scene in list(scenes.loaded.values())]

    def articulation_at(self, prim_path: str) -> Any:
        """Return the `IArticulation` at a prim path: a robot, or the joints of an object or at or below a scene prim.

        KeyError with the available ones.
        """
        raise NotImplementedError

    def rigid_body_at(self, prim_path: str) -> Any:
        """Return the `IRigidBody` (link, object, movable scene body) at a prim path. KeyError if there is none."""
        raise NotImplementedError

    def has_body_at(self, prim_path: str) -> bool:
        """Return True if `rigid_body_at` finds a body there."""
        try:
            self.rigid_body_at(prim_path)
        except KeyError:
            return False
        return True

    def get(self, target: str) -> Any:
        """Return the `IRigidBody` of the object or movable scene body of that name. KeyError with close matches."""
        raise NotImplementedError

    def camera_at(self, prim_path: str) -> CameraView:
        """Return the camera at a prim path. ValueError with the available cameras, or else robots."""
        robots = {f'{path}/': name for path, name in self.robot_paths.items()}
        for path, robot in {**robots, f'{self.root_path}/scene/': None}.items():
            if prim_path.startswith(path):
                return self.world.camera(robot, prim_path.removeprefix(path), self.lead_env)
        places = ', '.join((*robots, f'{self.root_path}/scene/'))
        raise ValueError(f'there is no camera at {prim_path!r}: cameras are below {places}')

    def object_exists(self, target: str) -> bool:
        """Return True if the env has an object or movable scene body of that name."""
        return self.user_name(target) in self.world.body_names(self.env_id)

    def user_name(self, target: str) -> str:
        """Return an object's name in the user's config for its name inside the env, which has the env id behind it."""
        short = target.removesuffix(f'_{self.env_id}')
        names = self.object_paths.values()
        return short if target not in names and short in names else target

    def add_object(self, spec: ObjectSpec) -> Any:
        """Add an object until the episode ends; returns its `IRigidBody`. ValueError if its name or path is taken."""
        raise NotImplementedError

    def remove_object(self, name: str) -> None:
        """Remove an object, and the joints that hold it, until the episode ends. KeyError with close matches."""
        raise NotImplementedError

    def set_joint(self, path: str, joint: JointSpec | None) -> None:
        """Add a joint (positions on the world in the world frame), or take it back (None), until the episode ends.

        ValueError if a body is not there, or no joint to take back.
        """
        raise NotImplementedError

    def add(self, target: Any) -> Any:
        """Add an `ObjectSpec`; of 2.x, a handle, whose body is there already. Returns the handle."""
        return self.add_object(target) if isinstance(target, ObjectSpec) else target

    def remove(self, target: Any, registry_only: bool = False) -> None:
        """Remove an object, by name or handle; see `remove_object`.

        Args:
            target: the object.
            registry_only: True removes nothing: there is no registry besides the scene.
        """
        if not registry_only:
            self.remove_object(target if isinstance(target, str) else target.name)

    def unwrap(self) -> Any:
        """Return the physics world; of an env with the conventions of another version, its scene."""
        raise NotImplementedError


def _places(env_id: int) -> list[EnvScenes]:
    return [scenes for scenes in EnvScenes.candidates() if env_id in scenes.loaded]


Array = NDArray[np.float64]

_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], bool)
_STILL = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class LabelledObject:
    """Labelled thing of a scene, or object of the task, at the time of the query.

    Its box has the axes of its body, or of its uppermost body if it has several; the box of a static thing has the
    axes of the env. An infinite plane counts as its origin.

    Attributes:
        prim_path: its prim path.
        category: its labels of type `class`; several are separated by commas.
        semantics: all its labels by type.
        position: `(3,)` middle of its box [m], env frame.
        orientation: `(4,)` of the box's axes in the env frame.
        size: `(3,)` edge lengths of the box [m].
        movable: True if physics moves it as a whole.
        body: name of its body for `env.runner.get_obj`; None for static ones.
    """

    prim_path: str
    category: str
    semantics: Mapping[str, str]
    position: Array
    orientation: Array
    size: Array
    movable: bool
    body: str | None


def labelled_objects(world: World, env_id: int, category: str | None = None) -> list[LabelledObject]:
    """Return the labelled things of an env, only those of a category unless it is None.

    ValueError with close matches if it has none of the category, or if it runs no scene.
    """
    scene = world.labels(env_id)
    if category is not None and category not in scene.categories:
        known = did_you_mean(category, sorted(scene.categories))
        raise EnvValueError(env_id, f'env {env_id} has no object labelled {category!r}; {known}')

    def pose(part: PartBox) -> tuple[Array, Array]:
        if part.body is None:
            return _STILL
        position, orientation = (to_host(values)[env_id] for values in world.body(part.body, env_id).get_poses())
        return position.astype(float), orientation.astype(float)

    found: list[LabelledObject] = []
    for thing, parts in zip(scene.things, scene.parts, strict=True):
        if category is not None and category not in thing.categories:
            continue
        poses = [pose(part) for part in parts]
        (place, orientation), first = poses[0], parts[0]
        axes = quat_to_matrix(orientation)
        low, high = first.low, first.high
        for part, (other, turn) in zip(parts[1:], poses[1:], strict=True):
            corners = other + np.where(_CORNERS, part.high, part.low) @ quat_to_matrix(turn).T
            own = (corners - place) @ axes
            low, high = np.minimum(low, own.min(axis=0)), np.maximum(high, own.max(axis=0))
        found.append(
            LabelledObject(
                prim_path=env_path(env_id) + thing.path,
                category=thing.category,
                semantics=dict(thing.semantics),
                position=place + axes @ (0.5 * (low + high)),
                orientation=orientation,
                size=high - low,
                movable=first.movable,
                body=first.body,
            )
        )
    return found
