"""App of Isaac Sim, and what of 5.x makes time pass: `SimulationApp`, `World`, `Scene`, `PhysicsContext`."""

from __future__ import annotations

from typing import Any

from pxr import Usd

from isaac_sim.recorded import class_standing_for
from isaac_sim.simulator import current


@class_standing_for('isaacsim.SimulationApp')
class SimulationApp:
    """One of a process; closing it ends the process."""

    def __init__(self, launch_config: dict[str, Any] | None = None, experience: str = ''):
        if current().app is not None:
            raise RuntimeError('a SimulationApp runs in this process already')
        self.config = {'headless': True, **(launch_config or {})}
        self.settings: dict[str, Any] = {}
        self._running = True
        current().app = self
        current().calls['apps'] += 1

    def update(self) -> None:
        current().update()

    def set_setting(self, setting: str, value: Any) -> None:
        self.settings[setting] = value

    def is_running(self) -> bool:
        return self._running

    def close(self, wait_for_replicator: bool = True, skip_cleanup: bool = False, exit_code: int = 0) -> None:
        current().stop()
        self._running = False
        raise SystemExit(exit_code)  # nothing after it runs


@class_standing_for('isaacsim.core.api.PhysicsContext')
class PhysicsContext:
    def enable_fabric(self, enable: bool) -> None:
        current().fabric = enable

    def get_physics_dt(self) -> float:
        return current().dt


@class_standing_for('isaacsim.core.api.scenes.Scene')
class Scene:
    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}

    def add(self, obj: Any) -> Any:
        if obj.name in self._objects:
            raise Exception(f'the scene has an object called {obj.name!r} already')
        self._objects[obj.name] = obj
        return obj

    def get_object(self, name: str) -> Any:
        return self._objects.get(name)

    def object_exists(self, name: str) -> bool:
        return name in self._objects


@class_standing_for('isaacsim.core.api.World')
class World:
    """The only one: making another gives the first, whatever it is asked for."""

    _made = False

    def __new__(cls, *args: Any, **kwargs: Any) -> World:
        simulator = current()
        if simulator.app is None:
            raise ModuleNotFoundError("No module named 'carb': instantiate SimulationApp first")
        if simulator.world is None:
            simulator.world = super().__new__(cls)
        return simulator.world

    def __init__(
        self,
        physics_dt: float | None = None,
        rendering_dt: float | None = None,
        stage_units_in_meters: float | None = None,
        physics_prim_path: str = '/physicsScene',
        backend: str = 'numpy',
        device: str | None = None,
    ):
        if self._made:
            return
        self._made = True
        simulator = current()
        simulator.set_dt(physics_dt or 1 / 60)
        simulator.rendering_dt = rendering_dt or 1 / 60
        simulator.stage.DefinePrim(physics_prim_path, 'PhysicsScene')
        self.backend = 'torch' if backend == 'numpy' and 'cuda' in (device or '') else backend
        self.device = device
        self.scene = Scene()
        self._context = PhysicsContext()

    @property
    def stage(self) -> Usd.Stage:
        return current().stage

    @property
    def current_time_step_index(self) -> int:
        return current().running_physics().steps

    @property
    def current_time(self) -> float:
        return current().running_physics().steps * current().dt

    @classmethod
    def clear_instance(cls) -> None:
        current().world = None

    def get_physics_context(self) -> PhysicsContext:
        return self._context

    def reset(self, soft: bool = False) -> None:
        if not soft:
            current().stop()
        current().play()
        for obj in self.scene._objects.values():
            obj.initialize()

    def step(self, render: bool = True) -> None:
        if render:
            current().update()
        else:
            current().step()

    def render(self) -> None:
        current().render()

    def play(self) -> None:
        current().play()

    def stop(self) -> None:
        current().stop()

    def is_playing(self) -> bool:
        return current().playing

    def is_stopped(self) -> bool:
        return not current().playing
