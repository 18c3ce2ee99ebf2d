"""`isaacsim.core.cloner`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pxr import Sdf

from internutopia.util.rotations import quat_multiply
from isaac_sim import stage as stages
from isaac_sim.recorded import class_standing_for
from isaac_sim.simulator import current


@class_standing_for('isaacsim.core.cloner.GridCloner')
class GridCloner:
    def __init__(self, spacing: float, num_per_row: int = -1):
        self._spacing = spacing
        self._num_per_row = num_per_row

    def generate_paths(self, root_path: str, num_paths: int) -> list[str]:
        return [f'{root_path}_{i}' for i in range(num_paths)]

    def get_clone_transforms(
        self, num_clones: int, position_offsets: Any = None, orientation_offsets: Any = None
    ) -> tuple[list[Any], list[Any]]:
        per_row = int(np.sqrt(num_clones)) if self._num_per_row == -1 else self._num_per_row
        rows = int(np.ceil(num_clones / per_row))
        columns = int(np.ceil(num_clones / rows))
        positions, orientations = [], []
        for i in range(num_clones):
            row, column = divmod(i, columns)
            x = (rows - 1) * self._spacing / 2 - row * self._spacing
            y = column * self._spacing - (columns - 1) * self._spacing / 2
            offset = np.zeros(3) if position_offsets is None else np.asarray(position_offsets[i])
            positions.append(np.array([x, y, 0.0]) + offset)
            turn = np.array([1.0, 0.0, 0.0, 0.0])
            if orientation_offsets is not None:
                turn = quat_multiply(np.asarray(orientation_offsets[i], np.float64), turn)
            orientations.append(turn)
        return positions, orientations

    def clone(
        self,
        source_prim_path: str,
        prim_paths: Sequence[str],
        position_offsets: Any = None,
        orientation_offsets: Any = None,
        replicate_physics: bool = False,
        base_env_path: str | None = None,
        root_path: str | None = None,
        copy_from_source: bool = False,
    ) -> list[Any]:
        simulator = current()
        simulator.calls['clones'] += 1
        stage = simulator.stage
        layer = stage.GetRootLayer()
        positions, orientations = self.get_clone_transforms(len(prim_paths), position_offsets, orientation_offsets)
        for path, position, orientation in zip(prim_paths, positions, orientations, strict=True):
            if path != source_prim_path:
                spec = Sdf.CreatePrimInLayer(layer, path)
                if copy_from_source:
                    Sdf.CopySpec(layer, source_prim_path, layer, path)
                else:
                    spec.specifier = Sdf.SpecifierDef
                    spec.inheritPathList.Prepend(source_prim_path)
            stages.set_local_pose(stage.GetPrimAtPath(path), position, orientation)
        if replicate_physics:
            if base_env_path is None or root_path is None:
                raise ValueError('replicate_physics needs base_env_path and root_path')
            inside = source_prim_path in prim_paths
            replicas = [f'{root_path}{k + 1 if inside else k}' for k in range(len(prim_paths) - inside)]
            simulator.calls['replications'] += 1
            simulator.replicated[base_env_path] = dict.fromkeys([source_prim_path, *replicas], source_prim_path)
        return positions

    def filter_collisions(
        self,
        physicsscene_path: str,
        collision_root_path: str,
        prim_paths: Sequence[str],
        global_paths: Sequence[str] = (),
    ) -> None:
        stage = current().stage
        if stage.GetPrimAtPath(physicsscene_path).GetTypeName() != 'PhysicsScene':
            raise Exception(f'{physicsscene_path} is no physics scene')
        for index, path in enumerate(prim_paths):
            stage.DefinePrim(f'{collision_root_path}/group{index}', 'PhysicsCollisionGroup')
            if not stage.GetPrimAtPath(path):
                raise Exception(f'{path} is no prim')
        current().filtered = list(prim_paths)
