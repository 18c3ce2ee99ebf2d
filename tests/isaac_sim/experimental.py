"""Experimental core of 6.x: prims, objects, stage, app, `SimulationManager` and `RenderingManager`.

Getters return arrays of Warp; `indices` and `dof_indices` are keywords.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import warp as wp
from pxr import Usd, UsdPhysics

from isaac_sim import stage as stages
from isaac_sim.objects import define_cube, make_rigid
from isaac_sim.prims import PhysicsPrims
from isaac_sim.recorded import class_standing_for
from isaac_sim.rows import ArticulationRows, BodyRows
from isaac_sim.simulator import current


def _warp(values: Any) -> wp.array:
    return wp.array(np.ascontiguousarray(values), device='cpu')


def _numpy(values: Any) -> Any:
    return values.numpy() if isinstance(values, wp.array) else None if values is None else np.asarray(values)


def _find(paths: str | list[str]) -> list[str]:
    """Prims by paths whose components are regular expressions, matched in full."""
    return current().paths(paths, lambda pattern, name: re.fullmatch(pattern, name) is not None)


class ExperimentalPrims(PhysicsPrims):
    """What views have in common: rows by `indices`, values that are broadcast to `(rows, k)`."""

    def _resolve(self, paths: str | list[str], defines: bool = False) -> None:
        self._simulator = current()
        self._name = str(paths)
        self._paths = _find(paths)
        if not self._paths and not defines:
            raise ValueError(f'no prim matches {paths}')

    @property
    def paths(self) -> list[str]:
        return list(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def _values(self, values: Any, indices: Any, size: int) -> Any:
        if values is None:
            return None
        rows = len(self._paths) if indices is None else np.size(_numpy(indices))
        return np.broadcast_to(np.asarray(_numpy(values), np.float32), (rows, size))

    def _require_physics(self) -> None:
        assert self._handle_is_valid(), 'Instance is not initialized: physics does not run, or the stage has changed'

    def _put(self, translations: Any, positions: Any, orientations: Any, scales: Any, has_ops: bool) -> None:
        given = [translations, positions, orientations, scales]
        if any(value is not None for value in given) and not has_ops:
            for prim in self._prims:
                if not prim.GetAttribute('xformOp:translate'):
                    raise ValueError(f'{prim.GetPath()} has no xformOp:translate: pass reset_xform_op_properties=True')
        sizes = (3, 3, 4, 3)
        translations, positions, orientations, scales = (
            self._values(value, None, size) for value, size in zip(given, sizes, strict=True)
        )
        self._place(positions, translations, orientations, scales)

    def _stage_poses(self, indices: Any) -> tuple[wp.array, wp.array]:
        positions, orientations = self._poses(stages.get_world_pose, _numpy(indices))
        return _warp(positions), _warp(orientations)

    def _move(self, positions: Any, orientations: Any, indices: Any) -> None:
        positions, orientations = self._values(positions, indices, 3), self._values(orientations, indices, 4)
        if self._handle_is_valid():
            self._data.set_poses(positions, orientations, _numpy(indices))
            return
        if positions is None:
            positions = self._poses(stages.get_world_pose, _numpy(indices))[0]
        self._place(positions, None, orientations, None, _numpy(indices))


@class_standing_for('isaacsim.core.experimental.prims.XformPrim')
class XformPrim(ExperimentalPrims):
    def __init__(
        self,
        paths: Any,
        *,
        positions: Any = None,
        translations: Any = None,
        orientations: Any = None,
        scales: Any = None,
        reset_xform_op_properties: bool = False,
    ):
        self._resolve(paths)
        self._put(translations, positions, orientations, scales, reset_xform_op_properties)

    def get_world_poses(self, *, indices: Any = None) -> tuple[wp.array, wp.array]:
        return self._stage_poses(indices)

    def set_world_poses(self, positions: Any = None, orientations: Any = None, *, indices: Any = None) -> None:
        self._move(positions, orientations, indices)


@class_standing_for('isaacsim.core.experimental.prims.GeomPrim')
class GeomPrim(ExperimentalPrims):
    def __init__(self, paths: Any, *, apply_collision_apis: bool = False):
        self._resolve(paths)
        for prim in self._prims if apply_collision_apis else ():
            UsdPhysics.CollisionAPI.Apply(prim)


@class_standing_for('isaacsim.core.experimental.objects.Cube')
class Cube(ExperimentalPrims):
    def __init__(
        self,
        paths: Any,
        *,
        sizes: Any = None,
        colors: Any = None,
        positions: Any = None,
        translations: Any = None,
        orientations: Any = None,
        scales: Any = None,
        reset_xform_op_properties: bool = True,
    ):
        self._resolve(paths, defines=True)
        given = [paths] if isinstance(paths, str) else list(paths)
        for path in given:
            if path not in self._paths:
                color = None if colors is None else np.reshape(_numpy(colors), (-1, 3))[0]
                define_cube(path, 2.0 if sizes is None else float(np.reshape(_numpy(sizes), -1)[0]), color)
        self._paths = given
        self._put(translations, positions, orientations, scales, reset_xform_op_properties)


class Moving(ExperimentalPrims):
    """What has velocities."""

    def _get_poses(self, indices: Any) -> tuple[wp.array, wp.array]:
        if not self._handle_is_valid():
            return self._stage_poses(indices)
        positions, orientations = self._data.get_poses(_numpy(indices))
        return _warp(positions), _warp(orientations)

    def _get_velocities(self, indices: Any) -> tuple[wp.array, wp.array]:
        self._require_physics()
        linear, angular = self._data.get_velocities(_numpy(indices))
        return _warp(linear), _warp(angular)

    def _set_velocities(self, linear: Any, angular: Any, indices: Any) -> None:
        self._require_physics()
        linear, angular = self._values(linear, indices, 3), self._values(angular, indices, 3)
        self._data.set_velocities(linear, angular, _numpy(indices))


@class_standing_for('isaacsim.core.experimental.prims.RigidPrim')
class RigidPrim(Moving):
    _kind = BodyRows

    def __init__(
        self,
        paths: Any,
        *,
        positions: Any = None,
        translations: Any = None,
        orientations: Any = None,
        reset_xform_op_properties: bool = False,
        masses: Any = None,
        densities: Any = None,
    ):
        self._resolve(paths)
        self._put(translations, positions, orientations, None, reset_xform_op_properties)
        masses, densities = self._values(masses, None, 1), self._values(densities, None, 1)
        for row, prim in enumerate(self._prims):
            mass, density = (None if value is None else value[row, 0] for value in (masses, densities))
            if mass is not None or density is not None or not prim.HasAPI(UsdPhysics.RigidBodyAPI):
                make_rigid(prim, mass, density)
        self._tracks = False
        self._watch()

    def is_physics_tensor_entity_valid(self) -> bool:
        return self._handle_is_valid()

    def get_world_poses(self, *, indices: Any = None) -> tuple[wp.array, wp.array]:
        return self._get_poses(indices)

    def set_world_poses(self, positions: Any = None, orientations: Any = None, *, indices: Any = None) -> None:
        self._move(positions, orientations, indices)

    def get_velocities(self, *, indices: Any = None) -> tuple[wp.array, wp.array]:
        return self._get_velocities(indices)

    def set_velocities(
        self, linear_velocities: Any = None, angular_velocities: Any = None, *, indices: Any = None
    ) -> None:
        self._set_velocities(linear_velocities, angular_velocities, indices)

    def get_masses(self, *, indices: Any = None, inverse: bool = False) -> wp.array:
        self._require_physics()
        masses = self._data.get_masses(_numpy(indices))
        return _warp(1 / masses if inverse else masses)

    def set_masses(self, masses: Any, *, indices: Any = None) -> None:
        self._require_physics()
        self._data.set_masses(self._values(masses, indices, 1), _numpy(indices))

    def get_inertias(self, *, indices: Any = None, inverse: bool = False) -> wp.array:
        self._require_physics()
        return _warp(self._data.get_inertias(_numpy(indices)))

    def set_inertias(self, inertias: Any, *, indices: Any = None) -> None:
        self._require_physics()
        self._data.set_inertias(self._values(inertias, indices, 9), _numpy(indices))

    def set_enabled_contact_tracking(self, enabled: Any, *, indices: Any = None, threshold: Any = 0.0) -> None:
        self._tracks = True
        self._simulator.tracked.update(self._paths)

    def get_net_contact_forces(self, *, indices: Any = None, dt: float = 1.0) -> wp.array:
        self._require_physics()
        if not self._tracks:
            raise Exception(f'contacts of {self._name} are not tracked')
        return _warp(self._data.get_contact_forces(_numpy(indices)) * np.float32(self._simulator.dt / dt))


@class_standing_for('isaacsim.core.experimental.prims.Articulation')
class Articulation(Moving):
    _kind = ArticulationRows

    def __init__(
        self,
        paths: Any,
        *,
        positions: Any = None,
        translations: Any = None,
        orientations: Any = None,
        reset_xform_op_properties: bool = False,
    ):
        self._resolve(paths)
        self._put(translations, positions, orientations, None, reset_xform_op_properties)
        roots = [
            next((prim for prim in Usd.PrimRange(given) if prim.HasAPI(UsdPhysics.ArticulationRootAPI)), None)
            for given in self._prims
        ]
        self._paths = [str(prim.GetPath()) for prim in roots if prim is not None]
        if len(self._paths) < len(roots):
            raise ValueError(f'there is no articulation root below some of {paths}')
        self._watch()

    @property
    def num_dofs(self) -> int:
        return self._data.dof

    @property
    def dof_names(self) -> list[str]:
        return list(self._data.joint_names)

    @property
    def num_links(self) -> int:
        return len(self._data.view.body_names)

    @property
    def link_names(self) -> list[str]:
        return list(self._data.view.body_names)

    def is_physics_tensor_entity_valid(self) -> bool:
        return self._handle_is_valid()

    def get_world_poses(self, *, indices: Any = None) -> tuple[wp.array, wp.array]:
        return self._get_poses(indices)

    def set_world_poses(self, positions: Any = None, orientations: Any = None, *, indices: Any = None) -> None:
        self._move(positions, orientations, indices)

    def get_velocities(self, *, indices: Any = None) -> tuple[wp.array, wp.array]:
        return self._get_velocities(indices)

    def set_velocities(
        self, linear_velocities: Any = None, angular_velocities: Any = None, *, indices: Any = None
    ) -> None:
        self._set_velocities(linear_velocities, angular_velocities, indices)

    def get_dof_positions(self, *, indices: Any = None, dof_indices: Any = None) -> wp.array:
        return self._joints('get_joint_positions', indices, dof_indices)

    def get_dof_velocities(self, *, indices: Any = None, dof_indices: Any = None) -> wp.array:
        return self._joints('get_joint_velocities', indices, dof_indices)

    def get_dof_projected_joint_forces(self, *, indices: Any = None, dof_indices: Any = None) -> wp.array:
        return self._joints('get_joint_efforts', indices, dof_indices)

    def get_dof_position_targets(self, *, indices: Any = None, dof_indices: Any = None) -> wp.array:
        return self._targets('position', indices, dof_indices)

    def get_dof_velocity_targets(self, *, indices: Any = None, dof_indices: Any = None) -> wp.array:
        return self._targets('velocity', indices, dof_indices)

    def get_dof_efforts(self, *, indices: Any = None, dof_indices: Any = None) -> wp.array:
        return self._targets('effort', indices, dof_indices)

    def set_dof_positions(self, positions: Any, *, indices: Any = None, dof_indices: Any = None) -> None:
        self._require_physics()
        values = self._joint_values(positions, indices, dof_indices)
        self._data.set_joint_state('positions', values, _numpy(indices), _numpy(dof_indices))

    def set_dof_velocities(self, velocities: Any, *, indices: Any = None, dof_indices: Any = None) -> None:
        self._require_physics()
        values = self._joint_values(velocities, indices, dof_indices)
        self._data.set_joint_state('velocities', values, _numpy(indices), _numpy(dof_indices))

    def set_dof_position_targets(self, positions: Any, *, indices: Any = None, dof_indices: Any = None) -> None:
        self._set('set_targets', indices, dof_indices, positions=positions)

    def set_dof_velocity_targets(self, velocities: Any, *, indices: Any = None, dof_indices: Any = None) -> None:
        self._set('set_targets', indices, dof_indices, velocities=velocities)

    def set_dof_efforts(self, efforts: Any, *, indices: Any = None, dof_indices: Any = None) -> None:
        self._set('set_targets', indices, dof_indices, efforts=efforts)

    def get_dof_gains(self, *, indices: Any = None, dof_indices: Any = None) -> tuple[wp.array, wp.array]:
        self._require_physics()
        stiffnesses, dampings = self._data.get_gains(_numpy(indices), _numpy(dof_indices))
        return _warp(stiffnesses), _warp(dampings)

    def set_dof_gains(
        self, stiffnesses: Any = None, dampings: Any = None, *, indices: Any = None, dof_indices: Any = None
    ) -> None:
        self._set('set_gains', indices, dof_indices, stiffness=stiffnesses, damping=dampings)

    def get_dof_max_efforts(self, *, indices: Any = None, dof_indices: Any = None) -> wp.array:
        self._require_physics()
        return _warp(self._data.get_max_efforts(_numpy(indices), _numpy(dof_indices)))

    def get_dof_limits(self, *, indices: Any = None) -> tuple[wp.array, wp.array]:
        self._require_physics()
        limits = np.repeat(self._data.joint_ranges[None], len(self._data.picked(_numpy(indices))), axis=0)
        return _warp(limits[..., 0]), _warp(limits[..., 1])

    def get_link_masses(self, *, indices: Any = None, link_indices: Any = None) -> wp.array:
        self._require_physics()
        return _warp(self._data.get_link_masses(_numpy(indices), _numpy(link_indices)))

    def set_link_masses(self, masses: Any, *, indices: Any = None, link_indices: Any = None) -> None:
        self._require_physics()
        size = self.num_links if link_indices is None else np.size(_numpy(link_indices))
        self._data.set_link_masses(self._values(masses, indices, size), _numpy(indices), _numpy(link_indices))

    def set_enabled_self_collisions(self, enabled: Any, *, indices: Any = None) -> None:
        self._require_physics()
        self._data.set_self_collisions(self._values(enabled, indices, 1)[:, 0], _numpy(indices))

    def set_link_enabled_gravities(self, enabled: Any, *, indices: Any = None, link_indices: Any = None) -> None:
        self._require_physics()
        size = self.num_links if link_indices is None else np.size(_numpy(link_indices))
        weightless = self._values(enabled, indices, size) == 0
        self._data.set_weightless(weightless, _numpy(indices), _numpy(link_indices))

    def _joints(self, getter: str, indices: Any, dof_indices: Any) -> wp.array:
        self._require_physics()
        return _warp(self._data.get_joints(getattr(self._data.view, getter), _numpy(indices), _numpy(dof_indices)))

    def _targets(self, kind: str, indices: Any, dof_indices: Any) -> wp.array:
        self._require_physics()
        return _warp(self._data.targets(kind, _numpy(indices), _numpy(dof_indices)))

    def _set(self, setter: str, indices: Any, dof_indices: Any, **values: Any) -> None:
        self._require_physics()
        values = {name: self._joint_values(value, indices, dof_indices) for name, value in values.items()}
        self._data.set_joints(getattr(self._data.view, setter), _numpy(indices), _numpy(dof_indices), **values)

    def _joint_values(self, values: Any, indices: Any, dof_indices: Any) -> Any:
        return self._values(values, indices, self._data.dof if dof_indices is None else np.size(_numpy(dof_indices)))
