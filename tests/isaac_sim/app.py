"""App of Isaac Sim, and what makes time pass: `World` of 5.x, the managers of 6.x, functions for app and stage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pxr import Usd, UsdGeom

from isaac_sim.recorded import class_standing_for, stands_for
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
        self._context = PhysicsContext()

    @classmethod
    def clear_instance(cls) -> None:
        current().world = None

    def get_physics_context(self) -> PhysicsContext:
        return self._context

    def reset(self, soft: bool = False) -> None:
        if not soft:
            current().stop()
        current().play()

    def step(self, render: bool = True) -> None:
        assert not render, 'physics alone is stepped'
        current().step()

    def render(self) -> None:
        current().render()

    def stop(self) -> None:
        current().stop()


@class_standing_for('isaacsim.core.simulation_manager.SimulationManager')
class SimulationManager:
    @classmethod
    def setup_simulation(cls, dt: float | None = None, device: Any = None) -> None:
        current().set_dt(dt or 1 / 60)
        current().stage.DefinePrim('/PhysicsScene', 'PhysicsScene')
        if device not in (None, 'cpu'):
            raise NotImplementedError(f'the stand-in has no device {device!r}')

    @classmethod
    def get_physics_scenes(cls) -> list[SimpleNamespace]:
        return [SimpleNamespace(path='/PhysicsScene')]

    @classmethod
    def step(cls, *, steps: int = 1) -> None:
        current().step(steps)

    @classmethod
    def enable_fabric(cls, enable: bool) -> None:
        current().fabric = enable


@class_standing_for('isaacsim.core.rendering_manager.RenderingManager')
class RenderingManager:
    @classmethod
    def render(cls) -> None:
        current().render()

    @classmethod
    def set_dt(cls, dt: float) -> None:
        current().rendering_dt = dt


@stands_for('isaacsim.core.experimental.utils.app.play')
def play(*, commit: bool = True) -> None:
    current().play()


@stands_for('isaacsim.core.experimental.utils.app.stop')
def stop(*, commit: bool = True) -> None:
    current().stop()


@stands_for('isaacsim.core.experimental.utils.app.update_app')
def update_app(*, steps: int = 1) -> None:
    for _ in range(steps):
        current().step()
        current().render()


@stands_for('isaacsim.core.experimental.utils.app.enable_extension')
def enable_extension(name: str) -> bool:
    current().extensions.append(name)
    return True


@stands_for('isaacsim.core.utils.extensions.enable_extension')
def enable_legacy_extension(extension_name: str) -> None:
    current().extensions.append(extension_name)


def stage_functions(package: str) -> dict[str, Any]:
    """Functions of a module for stages."""

    @stands_for(f'{package}.create_new_stage')
    def create_new_stage() -> Usd.Stage:
        return current().new_stage()

    @stands_for(f'{package}.get_current_stage')
    def get_current_stage() -> Usd.Stage:
        return current().stage

    @stands_for(f'{package}.set_stage_up_axis')
    def set_stage_up_axis(up_axis: str) -> None:
        UsdGeom.SetStageUpAxis(current().stage, up_axis)

    @stands_for(f'{package}.set_stage_units')
    def set_stage_units(*, meters_per_unit: float) -> None:
        UsdGeom.SetStageMetersPerUnit(current().stage, meters_per_unit)

    return {
        function.__name__: function
        for function in (create_new_stage, get_current_stage, set_stage_up_axis, set_stage_units)
    }
