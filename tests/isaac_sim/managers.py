"""Managers of 6.x, which make time pass: `SimulationManager`, `RenderingManager`, functions for app and stage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pxr import Usd, UsdGeom

from isaac_sim import stage as stages
from isaac_sim.recorded import class_standing_for, stands_for
from isaac_sim.simulator import current

_SCENE = '/PhysicsScene'


@class_standing_for('isaacsim.core.simulation_manager.SimulationManager')
class SimulationManager:
    @classmethod
    def setup_simulation(cls, dt: float | None = None, device: Any = None) -> None:
        if dt is not None:
            cls.set_physics_dt(dt)
        current().stage.DefinePrim(_SCENE, 'PhysicsScene')
        if device not in (None, 'cpu'):
            raise NotImplementedError(f'the stand-in has no device {device!r}')

    @classmethod
    def set_physics_dt(cls, dt: float = 1 / 60) -> None:
        if current().playing:
            raise RuntimeError('the physics dt cannot be set while the simulation plays')
        current().set_dt(dt)

    @classmethod
    def get_physics_scenes(cls) -> list[SimpleNamespace]:
        return [SimpleNamespace(path=_SCENE)] if current().stage.GetPrimAtPath(_SCENE) else []

    @classmethod
    def get_physics_dt(cls) -> float:
        return current().dt

    @classmethod
    def get_simulation_time(cls) -> float:
        return current().running_physics().steps * current().dt

    @classmethod
    def get_num_physics_steps(cls) -> int:
        return current().running_physics().steps

    @classmethod
    def step(cls, *, steps: int = 1, update_fabric: bool = False) -> None:
        if update_fabric and not current().fabric:
            raise ValueError('update_fabric needs fabric, which is not enabled')
        current().step(steps)

    @classmethod
    def enable_fabric(cls, enable: bool) -> None:
        current().fabric = enable

    @classmethod
    def is_fabric_enabled(cls) -> bool:
        return current().fabric


@class_standing_for('isaacsim.core.rendering_manager.RenderingManager')
class RenderingManager:
    @classmethod
    def render(cls) -> None:
        current().render()

    @classmethod
    def set_dt(cls, dt: float) -> None:
        current().rendering_dt = dt

    @classmethod
    def get_dt(cls) -> float:
        return current().rendering_dt


class app:
    """`isaacsim.core.experimental.utils.app`."""

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.app.play')
    def play(*, commit: bool = True) -> None:
        current().play()

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.app.stop')
    def stop(*, commit: bool = True) -> None:
        current().stop()

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.app.is_playing')
    def is_playing() -> bool:
        return current().playing

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.app.update_app')
    def update_app(*, steps: int = 1) -> None:
        for _ in range(steps):
            current().update()

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.app.enable_extension')
    def enable_extension(name: str) -> bool:
        current().extensions.append(name)
        return True


class stage:
    """`isaacsim.core.experimental.utils.stage`."""

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.stage.create_new_stage')
    def create_new_stage() -> Usd.Stage:
        return current().new_stage()

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.stage.close_stage')
    def close_stage() -> bool:
        current().new_stage()
        return True

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.stage.get_current_stage')
    def get_current_stage() -> Usd.Stage:
        return current().stage

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.stage.set_stage_units')
    def set_stage_units(*, meters_per_unit: float | None = None) -> None:
        UsdGeom.SetStageMetersPerUnit(current().stage, meters_per_unit or 1.0)

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.stage.set_stage_up_axis')
    def set_stage_up_axis(up_axis: str) -> None:
        UsdGeom.SetStageUpAxis(current().stage, up_axis)

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.stage.add_reference_to_stage')
    def add_reference_to_stage(usd_path: str, path: str, *, prim_type: str = 'Xform') -> Usd.Prim:
        return stages.add_reference(current().stage, usd_path, path, prim_type)

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.stage.define_prim')
    def define_prim(path: str, type_name: str = 'Xform') -> Usd.Prim:
        return current().stage.DefinePrim(path, type_name)

    @staticmethod
    @stands_for('isaacsim.core.experimental.utils.stage.delete_prim')
    def delete_prim(prim: Any) -> bool:
        return current().stage.RemovePrim(prim if isinstance(prim, str) else prim.GetPath())
