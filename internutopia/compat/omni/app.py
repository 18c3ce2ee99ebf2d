"""`omni.timeline`, `omni.kit.app` and `omni.physx`: time, frames and rays, over the world of `simulation`.

Their other calls drive Isaac Sim, and raise an error that says so. And `carb` and `omni.isaac.core.utils.extensions`:
settings that are kept and ignored, and messages that are logged.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from internutopia.compat.numbers import checked_numbers
from internutopia.compat.omni.simulation import SimulationContext
from internutopia.core.scene.scene import IScene
from internutopia.engines.base import World
from internutopia.util.log import log, warn_once

TIMELINE = ('TimelineEventType', 'get_timeline_interface')
"""Names of `omni.timeline`."""
APP = ('get_app', 'get_app_interface')
"""Names of `omni.kit.app`."""
PHYSX = ('acquire_physx_interface', 'get_physx_interface', 'get_physx_scene_query_interface')
"""Names of `omni.physx`."""
LOGGING = ('Double3', 'Float3', 'log_error', 'log_info', 'log_verbose', 'log_warn', 'settings')
"""Names of `carb`."""
SETTINGS = ('Settings', 'get_settings')
"""Names of `carb.settings`."""
CARB_UTILS = ('get_carb_setting', 'set_carb_setting')
"""Names of `isaacsim.core.utils.carb`."""
EXTENSIONS = ('disable_extension', 'enable_extension')
"""Names of `isaacsim.core.utils.extensions`."""
_SAME = 1e-6  # m, between distances to one plane, at most


_settings: dict[str, Any] = {}


class Float3(NamedTuple):
    """Three numbers."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


Double3 = Float3


class Settings:
    """Settings of Kit: kept, and otherwise unused."""

    def get(self, path: str) -> Any:
        """Return a setting, None if it was not set."""
        return _settings.get(path)

    def set(self, path: str, value: Any) -> None:
        """Keep a setting, with one warning that it changes nothing."""
        warn_once('carb setting %s is ignored: it only affects Isaac Sim', path)
        _settings[path] = value

    get_as_string = get_as_bool = get_as_int = get_as_float = get
    set_string = set_bool = set_int = set_float = set_default = set


get_settings = Settings
settings = SimpleNamespace(get_settings=get_settings)  # the module as an attribute of `carb`


def get_carb_setting(carb_settings: Settings, setting: str) -> Any:
    """Return a setting, None if it was not set."""
    return carb_settings.get(setting)


def set_carb_setting(carb_settings: Settings, setting: str, value: Any) -> None:
    """Keep a setting, which changes nothing."""
    carb_settings.set(setting, value)


log_error, log_warn, log_info, log_verbose = log.error, log.warning, log.info, log.debug


def enable_extension(extension_name: str) -> bool:
    """Warn once that there are no extensions of Kit; returns False."""
    warn_once('extension %s of Isaac Sim is not available', extension_name)
    return False


def disable_extension(extension_name: str) -> bool:
    """Do nothing; returns True."""
    return True


class _Interface:
    """Base of interfaces, with some of the calls."""

    _module: str
    _instead: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(name)
        raise NotImplementedError(f'{name} of {self._module} is not available: {self._instead}')


class TimelineEventType(Enum):
    """Events of a timeline; none is sent."""

    PLAY, PAUSE, STOP, CURRENT_TIME_TICKED = range(4)


class Timeline(_Interface):
    """Time of the Env that was made last. RuntimeError of `play`, `pause` and `stop` if there is none."""

    _module = 'omni.timeline'
    _instead = 'an Env has no other events than its steps, see World.add_physics_callback; SimConfig has the time step'

    def play(self) -> None:
        """Let `World.step` and `App.update` pass time."""
        _world().play()

    def pause(self) -> None:
        """Let `World.step` and `App.update` pass no time until `play`; `Env.step` does."""
        _world().pause()

    def stop(self) -> None:
        """Let `World.step` and `App.update` pass no time until `play`; `Env.step` does."""
        _world().stop()

    def is_playing(self) -> bool:
        """Return True if there is an Env, unless it was paused or stopped."""
        world = SimulationContext.instance()
        return world is not None and world.is_playing()

    def is_stopped(self) -> bool:
        """Return True if there is no Env, or it was stopped."""
        world = SimulationContext.instance()
        return world is None or world.is_stopped()

    def get_current_time(self) -> float:
        """Return the time of the episode in the first env that runs one [s]; 0 if none does."""
        world = SimulationContext.instance()
        return 0.0 if world is None else world.current_time

    def commit(self) -> None:
        """Do nothing: calls have their effect at once."""

    commit_silently = commit


class App(_Interface):
    """The app: its frames are physics steps of the Env that was made last, without commands."""

    _module = 'omni.kit.app'
    _instead = 'there is no app beside the Env; World.add_physics_callback calls a function after each step'

    def update(self) -> None:
        """Step all envs once, as `World.step`. RuntimeError if there is no Env."""
        _world().step()

    async def next_update_async(self) -> None:
        """Do the same."""
        self.update()

    def is_running(self) -> bool:
        """Return True until the Env that was made last has nothing left to do."""
        world = SimulationContext.instance()
        return world is None or world.has_work()

    def get_extension_manager(self) -> ExtensionManager:
        """Return what answers for extensions."""
        return ExtensionManager()


class ExtensionManager(_Interface):
    """Extensions: there are none."""

    _module = 'the extension manager of omni.kit.app'
    _instead = 'there are no extensions of Kit'

    def set_extension_enabled_immediate(self, extension_name: str, enabled: bool) -> bool:
        """Warn once that there are no extensions; returns False if one was to be enabled."""
        return (enable_extension if enabled else disable_extension)(extension_name)

    set_extension_enabled = set_extension_enabled_immediate

    def is_extension_enabled(self, extension_name: str) -> bool:
        """Return False."""
        return False


class Physx(_Interface):
    """Physics, as far as it is the same for each engine."""

    _module = 'omni.physx'
    _instead = 'World.step passes time, SimConfig chooses engine and time step, views set poses, velocities and forces'

    def subscribe_physics_step_events(self, callback: Callable[[float], None]) -> Subscription:
        """Call a function with the length of a physics step after each step, as long as the result is held."""
        return Subscription(callback)


class Subscription:
    """A function that is called after each physics step, until this is released."""

    def __init__(self, callback: Callable[[float], None]):
        self._world, self._name = _world(), f'subscription {id(self)}'
        self._world.add_physics_callback(self._name, callback)

    def unsubscribe(self) -> None:
        """Call the function no more."""
        if self._world.physics_callback_exists(self._name):
            self._world.remove_physics_callback(self._name)

    __del__ = unsubscribe


class SceneQuery(_Interface):
    """Questions about what collides, in all envs that run."""

    _module = 'the scene query interface of omni.physx'
    _instead = 'it has raycast_closest; contacts, lidar and depth cameras are sensors of robots'

    def raycast_closest(self, origin: Any, dir: Any, distance: float, bothSides: bool = False) -> dict[str, Any]:  # noqa: A002, N803
        """Find what a ray meets first.

        Args:
            origin: in the world `(3,)` [m].
            dir: direction `(3,)`.
            distance: length of the ray [m].
            bothSides: accepted. From inside of a shape, a ray meets the shape where it leaves it.

        Returns:
            `hit`; if that is True, also `distance` [m], `position` and `normal` in the world, and as `rigidBody` and
            `collision` the prim path of the robot's link, object or body of the scene; of what does not move, that of
            the scene. A ground without end is that of the env whose origin is nearest.

        Raises:
            ValueError: origin, direction or distance are not finite, or the direction has no length.
        """
        start, way = (
            checked_numbers(f'raycast_closest: {each!r}', values, 3)
            for each, values in (('origin', origin), ('dir', dir))
        )
        reach = checked_numbers("raycast_closest: 'distance'", distance, 1)[0]
        length = float(np.linalg.norm(way))
        if not 0.0 < length < np.inf:
            raise ValueError(f"raycast_closest: 'dir' must have a length, got {dir!r}")
        hits = [
            (scene, hit) for scene in IScene.all() if (hit := _cast(scene, start, way / length)) and hit[0] <= reach
        ]
        if not hits:
            return {'hit': False}
        nearest = min(hit[0] for _, hit in hits)
        place = start + nearest * way / length
        _, (far, normal, path) = min(  # planes of several envs are all hit at the same place
            (each for each in hits if each[1][0] <= nearest + _SAME),
            key=lambda each: float(np.linalg.norm(place - each[0].world.env_origins[each[0].env_id])),
        )
        position = Float3(*place.tolist())
        return {
            'hit': True,
            'distance': far,
            'position': position,
            'normal': Float3(*normal.tolist()),
            'rigidBody': path,
            'collision': path,
        }


get_timeline_interface, get_app, get_app_interface = Timeline, App, App
get_physx_interface, acquire_physx_interface, get_physx_scene_query_interface = Physx, Physx, SceneQuery


def _world() -> SimulationContext:
    world = SimulationContext.instance()
    if world is None:
        raise RuntimeError('there is no Env to step: create one with Env(config) first')
    return world


_snapshots: WeakKeyDictionary[World, tuple[int, dict[int, Any]]] = WeakKeyDictionary()  # with the version of the world


def _cast(scene: IScene, start: Any, way: Any) -> tuple[float, Any, str] | None:
    """Return distance, normal and prim path of what a ray meets first in an env; None if it meets nothing."""
    world: Any = scene.world
    version, of_envs = _snapshots.get(world, (-1, {}))
    if version != world.version:
        of_envs = {}
        _snapshots[world] = world.version, of_envs
    if scene.env_id not in of_envs:
        model, data = world.model(scene.env_id), world.data(scene.env_id)
        model.geom_group[:] = (model.geom_contype | model.geom_conaffinity) == 0
        model.geom_rgba[:, 3] = 1.0  # rays pass through what is invisible
        model.geom_matid[:] = -1
        of_envs[scene.env_id] = model, data
    model, data = of_envs[scene.env_id]
    geom, normal = np.array([-1], np.int32), np.zeros(3)
    origin = start - world.env_origins[scene.env_id]
    far = mujoco.mj_ray(model, data, origin, way, np.array([1, 0, 0, 0, 0, 0], np.uint8), 1, -1, geom, normal)
    return None if geom[0] < 0 else (far, normal, _path(scene, model, int(model.geom_bodyid[geom[0]])))


def _path(scene: IScene, model: mujoco.MjModel, body: int) -> str:
    """Return the prim path of the nearest of a body and those above it that has one, else of the scene."""
    compiled = scene.world.scene(scene.env_id)  # pyright: ignore[reportAttributeAccessIssue]
    robots = {name: path for path, name in scene.robot_paths.items()}
    paths = {
        link.body: f'{robots[name]}/{each}'
        for name, robot in compiled.robots.items()
        for each, link in robot.bodies.items()
    }
    paths.update({compiled.bodies[name].body: scene.get(name).prim_path for name in compiled.bodies})
    while body and body not in paths:
        body = int(model.body_parentid[body])
    return paths.get(body, f'{scene.root_path}/scene')
