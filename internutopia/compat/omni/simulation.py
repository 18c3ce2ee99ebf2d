"""`World` and `SimulationContext` of `omni.isaac.core`, `SimulationApp.update` and viewports, over the Env.

There is one world: that of the Env that was made last, `env.runner._world`. A step of it lets time pass in all envs
without commands, and is counted by no episode, as `Env.warm_up`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.compat.numbers import checks_arguments
from internutopia.compat.omni import mirror
from internutopia.compat.omni.handles import change_object
from internutopia.core.scene.scene import IScene
from internutopia.util.arrays import to_host
from internutopia.util.log import warn_once

if TYPE_CHECKING:
    from pxr import Usd

CONTEXTS = ('SimulationContext', 'World')
"""Names of `isaacsim.core.api`."""
VIEWPORTS = ('set_camera_view',)
"""Names of `isaacsim.core.utils.viewports`."""

_VIEW = '/OmniverseKit_Persp'


class SimulationContext:
    """Time in the Env that was made last. RuntimeError if there is none.

    Args:
        physics_dt: accepted if it is that of the Env, else a ValueError: it is set by `SimConfig`.
        rendering_dt: accepted.
        stage_units_in_meters: accepted if it is 1.
        **options: accepted.
    """

    _runner: Any = None  # `LocalRunner` of the Env that was made last

    @checks_arguments
    def __init__(
        self,
        physics_dt: float | None = None,
        rendering_dt: float | None = None,
        stage_units_in_meters: float | None = None,
        **options: Any,
    ):
        if SimulationContext._runner is None:
            raise RuntimeError(f'{type(self).__name__} belongs to an Env: create one with Env(config) first')
        self._own = SimulationContext._runner
        self._callbacks: dict[str, Callable[[float], None]] = {}
        self._times = np.zeros(self._own.env_num)
        if physics_dt is not None and abs(physics_dt - self._own.dt) > 1e-9:
            raise ValueError(f'physics_dt={physics_dt}: that of the Env is {self._own.dt}, see SimConfig')
        if stage_units_in_meters not in (None, 1, 1.0):
            raise ValueError(f'stage_units_in_meters={stage_units_in_meters}: lengths are in metres')

    @classmethod
    def instance(cls) -> SimulationContext | None:
        """Return the world of the Env that was made last, None if there is none."""
        return None if SimulationContext._runner is None else SimulationContext._runner.simulator._world

    @classmethod
    def clear_instance(cls) -> None:
        """Do nothing: the world ends with its Env."""

    @property
    def stage(self) -> Usd.Stage:
        """The stage, up to date with the envs."""
        return mirror.current_stage()

    @property
    def current_time_step_index(self) -> int:
        """Number of steps so far."""
        return self._own.simulator.get_current_time_step_index()

    @property
    def current_time(self) -> float:
        """Time of the episode in the first env that runs one [s]."""
        simulator = self._own.simulator
        loaded = sorted(simulator.scenes.loaded)
        return float(simulator.world.times[loaded[0]]) if loaded else 0.0

    def get_physics_dt(self) -> float:
        """Return the length of a physics step [s]."""
        return self._own.dt

    def get_rendering_dt(self) -> float:
        """Return the time between frames [s], `SimConfig.rendering_dt`."""
        return float(self._own.simulator.config.simulator.rendering_dt)

    def set_simulation_dt(self, physics_dt: float | None = None, rendering_dt: float | None = None) -> None:
        """Raise a ValueError for another time step than the Env's: that is set by `SimConfig`."""
        type(self)(physics_dt)

    def step(self, render: bool = True, *args: Any, **options: Any) -> None:
        """Step all envs once, without commands, unless the world was stopped or paused; a frame is due if `render`."""
        if self.is_playing():
            self._own.warm_up(1, physics=True)
        if render:
            self.render()

    def add_physics_callback(self, callback_name: str, callback_fn: Callable[[float], None]) -> None:
        """Call a function with the length of a physics step after each step, of this world and of the Env.

        ValueError if there is one of that name, TypeError if it cannot be called.
        """
        if not callable(callback_fn):
            raise TypeError(f'physics callback {callback_name!r}: expected a function, got {callback_fn!r}')
        if self.physics_callback_exists(callback_name):
            raise ValueError(f'there is a physics callback {callback_name!r} already')
        self._callbacks[callback_name] = callback_fn
        after_physics = self._own.simulator.scenes.after_physics
        if self._call_back not in after_physics:
            after_physics.append(self._call_back)

    def remove_physics_callback(self, callback_name: str) -> None:
        """Call a function no more. KeyError if there is none of that name."""
        del self._callbacks[callback_name]

    def physics_callback_exists(self, callback_name: str) -> bool:
        """Return True if there is a physics callback of that name."""
        return callback_name in self._callbacks

    def clear_physics_callbacks(self) -> None:
        """Call none of the functions any more."""
        self._callbacks.clear()

    def render(self) -> None:
        """Let all cameras show the present when they are read next."""
        simulator = self._own.simulator
        simulator.world.frame_due = True
        for env_id in simulator.scenes.loaded:
            simulator.batches.forget(env_id)

    def reset(self, soft: bool = False) -> None:
        """Play; `Env.reset` starts episodes."""
        self.play()

    def play(self) -> None:
        """Let `step` of this world pass time."""
        self._own.is_stopped = self._own.is_paused = False

    def pause(self) -> None:
        """Let `step` of this world pass no time until `play`; `Env.step` does."""
        self._own.is_paused = True

    def stop(self) -> None:
        """Let `step` of this world pass no time until `play`; `Env.step` does."""
        self._own.is_stopped = True

    def is_playing(self) -> bool:
        """Return True unless the world was paused or stopped."""
        return not (self.is_stopped() or getattr(self._own, 'is_paused', False))

    def is_stopped(self) -> bool:
        """Return True if the world was stopped."""
        return getattr(self._own, 'is_stopped', False)

    def has_work(self) -> bool:
        """Return True as long as an episode runs or is left."""
        return self._own.running or not self._own.simulator.queue.exhausted

    def _call_back(self) -> None:
        times = to_host(self._own.simulator.world.times).copy()
        if (times > self._times).any():  # else episodes were loaded
            for call in list(self._callbacks.values()):
                call(self._own.dt)
        self._times = times


class World(SimulationContext):
    """`SimulationContext` with a scene."""

    @property
    def scene(self) -> Scene | None:
        """The scene of the first env that runs an episode."""
        loaded = self._own.simulator.scenes.loaded
        return Scene(loaded[min(loaded)]) if loaded else None


class Scene:
    """Scene of Isaac Sim, over that of an env, whose other calls it has, too."""

    def __init__(self, scene: IScene):
        self._scene = scene

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(name)
        return getattr(self._scene, name)

    @property
    def stage(self) -> Usd.Stage:
        """The stage, up to date with the envs."""
        return mirror.current_stage()

    def get_object(self, name: str) -> Any:
        """Return the handle of a robot, an object or a movable body of the scene, None if there is none."""
        path = next((path for path, robot in self._scene.robot_paths.items() if robot == name), None)
        if path is not None:
            return self._scene.articulation_at(path)
        return self._scene.get(name) if self._scene.object_exists(name) else None

    def remove_object(self, name: str, registry_only: bool = False) -> None:
        """Remove an object until the episode ends. KeyError with close matches."""
        self._scene.remove(name, registry_only)


def use_runner(runner: Any) -> None:
    """Make `World` that of an Env, by its `LocalRunner`, and give `env.runner` calls of 2.x."""
    SimulationContext._runner = runner
    simulator = runner.simulator
    simulator._world = World()
    simulator.get_obs = runner.get_obs
    simulator.add_collider, simulator.remove_collider = (partial(change_object, collider=on) for on in (True, False))


def leave_runner(runner: Any) -> None:
    """Let there be no `World` if it is that of this Env, which is being closed."""
    runner.is_stopped = True
    if SimulationContext._runner is runner:
        SimulationContext._runner = None


def set_camera_view(eye: Any, target: Any, camera_prim_path: str = _VIEW, viewport_api: Any = None) -> None:
    """Warn that there is no viewport: `env.render(camera=(eye, target))` renders what it would show."""
    warn_once(
        'set_camera_view(%s, %s): there is no viewport; env.render(camera=(eye, target)) renders what it would show',
        *(tuple(map(float, point)) for point in (eye, target)),
    )
