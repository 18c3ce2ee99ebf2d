"""`isaacsim.core.utils`: the functions for stages, prims and extensions."""

from __future__ import annotations

from typing import Any

from pxr import Usd, UsdGeom

from isaac_sim import stage as stages
from isaac_sim.recorded import stands_for
from isaac_sim.simulator import current


class stage:
    """`isaacsim.core.utils.stage`."""

    @staticmethod
    @stands_for('isaacsim.core.utils.stage.create_new_stage')
    def create_new_stage() -> Usd.Stage:
        return current().new_stage()

    @staticmethod
    @stands_for('isaacsim.core.utils.stage.get_current_stage')
    def get_current_stage() -> Usd.Stage:
        return current().stage

    @staticmethod
    @stands_for('isaacsim.core.utils.stage.add_reference_to_stage')
    def add_reference_to_stage(usd_path: str, prim_path: str, prim_type: str = 'Xform') -> Usd.Prim:
        return stages.add_reference(current().stage, usd_path, prim_path, prim_type)

    @staticmethod
    @stands_for('isaacsim.core.utils.stage.set_stage_units')
    def set_stage_units(stage_units_in_meters: float) -> None:
        UsdGeom.SetStageMetersPerUnit(current().stage, stage_units_in_meters)

    @staticmethod
    @stands_for('isaacsim.core.utils.stage.update_stage')
    def update_stage() -> None:
        current().update()


class prims:
    """`isaacsim.core.utils.prims`."""

    @staticmethod
    @stands_for('isaacsim.core.utils.prims.define_prim')
    def define_prim(prim_path: str, prim_type: str = 'Xform') -> Usd.Prim:
        if current().stage.GetPrimAtPath(prim_path):
            raise Exception(f'a prim already exists at {prim_path}')
        return current().stage.DefinePrim(prim_path, prim_type)

    @staticmethod
    @stands_for('isaacsim.core.utils.prims.delete_prim')
    def delete_prim(prim_path: str) -> None:
        current().stage.RemovePrim(prim_path)

    @staticmethod
    @stands_for('isaacsim.core.utils.prims.get_prim_at_path')
    def get_prim_at_path(prim_path: str) -> Usd.Prim:
        return current().stage.GetPrimAtPath(prim_path)

    @staticmethod
    @stands_for('isaacsim.core.utils.prims.is_prim_path_valid')
    def is_prim_path_valid(prim_path: str) -> bool:
        return current().stage.GetPrimAtPath(prim_path).IsValid()

    @staticmethod
    @stands_for('isaacsim.core.utils.prims.set_prim_attribute_value')
    def set_prim_attribute_value(prim_path: str, attribute_name: str, value: Any) -> None:
        attribute = current().stage.GetPrimAtPath(prim_path).GetAttribute(attribute_name)
        if not attribute.Set(value):
            raise Exception(f'{prim_path} has no attribute {attribute_name}')


class extensions:
    """`isaacsim.core.utils.extensions`."""

    @staticmethod
    @stands_for('isaacsim.core.utils.extensions.enable_extension')
    def enable_extension(extension_name: str) -> bool:
        current().extensions.append(extension_name)
        return True
