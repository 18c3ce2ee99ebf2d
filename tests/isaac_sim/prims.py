"""`isaacsim.core.prims`: the batch views of 5.x, which 6.x still has."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from pxr import Usd, UsdPhysics

from isaac_sim import stage as stages
from isaac_sim.physics import Floats
from isaac_sim.recorded import class_standing_for
from isaac_sim.rows import ArticulationRows, BodyRows
from isaac_sim.simulator import current


def find(patterns: str | list[str]) -> list[str]:
    """The prims that patterns name: a glob per component, of which `.*` alone is translated."""
    return current().paths(patterns, lambda pattern, name: fnmatchcase(name, pattern.replace('.*', '*')))


class PosedPrims:
    """What all views of prims have in common; poses are those of the stage."""

    def _find(self, patterns: str | list[str], name: str) -> None:
        self._simulator = current()
        self._patterns, self._name = patterns, name
        self._paths = find(patterns)
        if not self._paths:
            raise Exception(
                f'Prim path expression {patterns} is invalid, a prim matching the expression needs to exist'
            )

    @property
    def _prims(self) -> list[Usd.Prim]:
        return [self._simulator.stage.GetPrimAtPath(path) for path in self._paths]

    def _place(self, positions: Any, translations: Any, orientations: Any, scales: Any, indices: Any = None) -> None:
        if positions is not None and translations is not None:
            raise AssertionError('positions and translations exclude each other')
        rows = range(len(self._paths)) if indices is None else np.asarray(indices)
        for k, row in enumerate(rows):
            prim = self._prims[row]
            turn = None if orientations is None else orientations[k]
            if positions is not None:
                stages.set_world_pose(prim, positions[k], turn)
            elif translations is not None or orientations is not None:
                stages.set_local_pose(prim, None if translations is None else translations[k], turn)
            if scales is not None:
                stages.set_local_pose(prim, scale=scales[k])

    def _poses(self, get: Any, indices: Any) -> tuple[Floats, Floats]:
        prims = self._prims if indices is None else [self._prims[row] for row in np.asarray(indices)]
        poses = [get(prim) for prim in prims]
        positions, orientations = (np.array([pose[k] for pose in poses], np.float32) for k in (0, 1))
        return positions, orientations


class LegacyPrims(PosedPrims):
    """What all views of 5.x show."""

    @property
    def prim_paths(self) -> list[str]:
        """Of the rows."""
        return list(self._paths)

    @property
    def prims(self) -> list[Usd.Prim]:
        """Of the rows."""
        return self._prims

    @property
    def name(self) -> str:
        """By which a Scene knows it."""
        return self._name

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self._paths)


@class_standing_for('isaacsim.core.prims.XFormPrim')
class XFormPrim(LegacyPrims):
    def __init__(
        self,
        prim_paths_expr: str | list[str],
        name: str = 'xform_prim_view',
        positions: Any = None,
        translations: Any = None,
        orientations: Any = None,
        scales: Any = None,
        reset_xform_properties: bool = True,
    ):
        self._find(prim_paths_expr, name)
        self._place(positions, translations, orientations, scales)

    def get_world_poses(self, indices: Any = None, usd: bool = True) -> tuple[Floats, Floats]:
        return self._poses(stages.get_world_pose, indices)

    def set_world_poses(
        self, positions: Any = None, orientations: Any = None, indices: Any = None, usd: bool = True
    ) -> None:
        if positions is None:
            positions = self._poses(stages.get_world_pose, indices)[0]
        self._place(positions, None, orientations, None, indices)

    def get_local_poses(self, indices: Any = None) -> tuple[Floats, Floats]:
        return self._poses(stages.get_local_pose, indices)

    def set_local_poses(self, translations: Any = None, orientations: Any = None, indices: Any = None) -> None:
        self._place(None, translations, orientations, None, indices)

    def set_local_scales(self, scales: Any, indices: Any = None) -> None:
        self._place(None, None, None, scales, indices)


class PhysicsPrims(PosedPrims):
    """Views that look at physics, once it is there."""

    _rows: Any = None
    _kind: type[ArticulationRows] | type[BodyRows]
    _reorders = False  # whether the order of rows is the engine's, once it runs

    def _watch(self) -> None:
        self._simulator.views.add(self)
        if self._simulator.playing:
            self._physics_ready()

    def _physics_ready(self) -> None:
        """Look at the physics that runs."""
        if all(prim.IsValid() for prim in self._prims):
            if self._reorders:
                self._paths = sorted(self._paths, reverse=True)
            self._rows = self._kind(self._simulator, self._paths)

    @property
    def _data(self) -> Any:
        """What physics has of the prims. RuntimeError if it is not there (any more)."""
        if self._rows is None:
            raise RuntimeError(f'the view {self._name!r} is not initialized: physics does not run')
        return self._rows

    def _initialize(self) -> None:
        self._simulator.running_physics()
        if self._rows is None or not self._rows.valid:
            self._physics_ready()

    def _handle_is_valid(self) -> bool:
        return self._rows is not None and self._rows.valid


@class_standing_for('isaacsim.core.prims.RigidPrim')
class RigidPrim(PhysicsPrims, LegacyPrims):
    _kind = BodyRows

    def __init__(
        self,
        prim_paths_expr: str | list[str],
        name: str = 'rigid_prim_view',
        positions: Any = None,
        translations: Any = None,
        orientations: Any = None,
        reset_xform_properties: bool = True,
        masses: Any = None,
        densities: Any = None,
        track_contact_forces: bool = False,
        prepare_contact_sensors: bool = True,
    ):
        self._find(prim_paths_expr, name)
        self._place(positions, translations, orientations, None)
        self._tracks = track_contact_forces
        if track_contact_forces and prepare_contact_sensors:
            self._simulator.tracked.update(self._paths)
        for k, prim in enumerate(self._prims):
            if not prim.HasAPI(UsdPhysics.RigidBodyAPI):
                UsdPhysics.RigidBodyAPI.Apply(prim)
            if masses is not None:
                UsdPhysics.MassAPI.Apply(prim).CreateMassAttr(float(np.reshape(masses, -1)[k]))
            if densities is not None:
                UsdPhysics.MassAPI.Apply(prim).CreateDensityAttr(float(np.reshape(densities, -1)[k]))
        self._watch()

    def initialize(self, physics_sim_view: Any = None) -> None:
        self._initialize()

    def is_physics_handle_valid(self) -> bool:
        return self._handle_is_valid()

    def get_world_poses(self, indices: Any = None, clone: bool = True, usd: bool = True) -> tuple[Floats, Floats]:
        if not self._handle_is_valid():
            return self._poses(stages.get_world_pose, indices)
        return self._data.get_poses(indices)

    def set_world_poses(
        self, positions: Any = None, orientations: Any = None, indices: Any = None, usd: bool = True
    ) -> None:
        if not self._handle_is_valid():
            self._place(positions, None, orientations, None, indices)
        else:
            self._data.set_poses(positions, orientations, indices)

    def get_velocities(self, indices: Any = None, clone: bool = True) -> Floats:
        return np.concatenate(self._data.get_velocities(indices), axis=-1)

    def get_linear_velocities(self, indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_velocities(indices)[0]

    def get_angular_velocities(self, indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_velocities(indices)[1]

    def set_velocities(self, velocities: Any, indices: Any = None) -> None:
        self._data.set_velocities(*_split(velocities), indices)

    def set_linear_velocities(self, velocities: Any, indices: Any = None) -> None:
        self._data.set_velocities(velocities, None, indices)

    def set_angular_velocities(self, velocities: Any, indices: Any = None) -> None:
        self._data.set_velocities(None, velocities, indices)

    def get_masses(self, indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_masses(indices)

    def set_masses(self, masses: Any, indices: Any = None) -> None:
        self._data.set_masses(masses, indices)

    def get_inertias(self, indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_inertias(indices)

    def set_inertias(self, values: Any, indices: Any = None) -> None:
        self._data.set_inertias(values, indices)

    def get_net_contact_forces(self, indices: Any = None, clone: bool = True, dt: float = 1.0) -> Floats | None:
        if not self._tracks:
            raise Exception(f'contact forces of {self._name!r} are not tracked: pass track_contact_forces=True')
        return self._data.get_contact_forces(indices) * np.float32(self._simulator.dt / dt)


@class_standing_for('isaacsim.core.prims.Articulation')
class Articulation(PhysicsPrims, LegacyPrims):
    _kind = ArticulationRows
    _reorders = True

    def __init__(
        self,
        prim_paths_expr: str | list[str],
        name: str = 'articulation_prim_view',
        positions: Any = None,
        translations: Any = None,
        orientations: Any = None,
        reset_xform_properties: bool = True,
    ):
        self._find(prim_paths_expr, name)
        patterns = [prim_paths_expr] if isinstance(prim_paths_expr, str) else prim_paths_expr
        first = self._prims[0]
        root = next((prim for prim in Usd.PrimRange(first) if prim.HasAPI(UsdPhysics.ArticulationRootAPI)), None)
        if root is None:
            raise Exception(f'there is no articulation root at or below {first.GetPath()}')
        below = str(root.GetPath()).removeprefix(str(first.GetPath()))
        self._place(positions, translations, orientations, None)
        self._find([pattern + below for pattern in patterns], name)
        self._watch()

    def initialize(self, physics_sim_view: Any = None) -> None:
        self._initialize()

    def is_physics_handle_valid(self) -> bool:
        return self._handle_is_valid()

    @property
    def num_dof(self) -> int | None:
        return None if self._rows is None else self._rows.dof

    @property
    def dof_names(self) -> list[str] | None:
        return None if self._rows is None else list(self._rows.joint_names)

    @property
    def body_names(self) -> list[str] | None:
        return None if self._rows is None else list(self._rows.view.body_names)

    @property
    def num_bodies(self) -> int | None:
        return None if self._rows is None else len(self._rows.view.body_names)

    def get_dof_index(self, dof_name: str) -> int:
        return self._data.joint_names.index(dof_name)

    def get_link_index(self, link_name: str) -> int:
        return self._data.view.body_names.index(link_name)

    def get_dof_limits(self) -> Floats:
        return np.repeat(self._data.joint_ranges[None], self.count, axis=0)

    def get_world_poses(self, indices: Any = None, clone: bool = True, usd: bool = True) -> tuple[Floats, Floats]:
        if not self._handle_is_valid():
            return self._poses(stages.get_world_pose, indices)
        return self._data.get_poses(indices)

    def set_world_poses(
        self, positions: Any = None, orientations: Any = None, indices: Any = None, usd: bool = True
    ) -> None:
        self._data.set_poses(positions, orientations, indices)

    def get_velocities(self, indices: Any = None, clone: bool = True) -> Floats:
        return np.concatenate(self._data.get_velocities(indices), axis=-1)

    def get_linear_velocities(self, indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_velocities(indices)[0]

    def get_angular_velocities(self, indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_velocities(indices)[1]

    def set_velocities(self, velocities: Any = None, indices: Any = None) -> None:
        self._data.set_velocities(*_split(velocities), indices)

    def set_linear_velocities(self, velocities: Any = None, indices: Any = None) -> None:
        self._data.set_velocities(velocities, None, indices)

    def set_angular_velocities(self, velocities: Any = None, indices: Any = None) -> None:
        self._data.set_velocities(None, velocities, indices)

    def get_joint_positions(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_joints(self._data.view.get_joint_positions, indices, joint_indices)

    def get_joint_velocities(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_joints(self._data.view.get_joint_velocities, indices, joint_indices)

    def get_measured_joint_efforts(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_joints(self._data.view.get_joint_efforts, indices, joint_indices)

    def get_applied_joint_efforts(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Floats:
        return self._data.targets('effort', indices, joint_indices)

    def set_joint_positions(self, positions: Any, indices: Any = None, joint_indices: Any = None) -> None:
        self._data.set_joint_state('positions', positions, indices, joint_indices)

    def set_joint_velocities(self, velocities: Any, indices: Any = None, joint_indices: Any = None) -> None:
        self._data.set_joint_state('velocities', velocities, indices, joint_indices)

    def set_joint_position_targets(self, positions: Any, indices: Any = None, joint_indices: Any = None) -> None:
        self._data.set_joints(self._data.view.set_targets, indices, joint_indices, positions=positions)

    def set_joint_velocity_targets(self, velocities: Any, indices: Any = None, joint_indices: Any = None) -> None:
        self._data.set_joints(self._data.view.set_targets, indices, joint_indices, velocities=velocities)

    def set_joint_efforts(self, efforts: Any, indices: Any = None, joint_indices: Any = None) -> None:
        if self._simulator.legacy and joint_indices is not None:  # the others are zeroed
            nothing = np.zeros((len(self._data.picked(indices)), self._data.dof), np.float32)
            self._data.set_joints(self._data.view.set_targets, indices, None, efforts=nothing)
        self._data.set_joints(self._data.view.set_targets, indices, joint_indices, efforts=efforts)

    def get_gains(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> tuple[Floats, Floats]:
        return self._data.get_gains(indices, joint_indices)

    def set_gains(self, kps: Any = None, kds: Any = None, indices: Any = None, joint_indices: Any = None) -> None:
        self._data.set_joints(self._data.view.set_gains, indices, joint_indices, stiffness=kps, damping=kds)

    def get_max_efforts(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_max_efforts(indices, joint_indices)

    def get_body_masses(self, indices: Any = None, body_indices: Any = None, clone: bool = True) -> Floats:
        return self._data.get_link_masses(indices, body_indices)

    def set_body_masses(self, values: Any, indices: Any = None, body_indices: Any = None) -> None:
        self._data.set_link_masses(values, indices, body_indices)

    def set_enabled_self_collisions(self, flags: Any, indices: Any = None) -> None:
        self._data.set_self_collisions(flags, indices)

    def set_body_disable_gravity(self, values: Any, indices: Any = None, body_indices: Any = None) -> None:
        self._data.set_weightless(values, indices, body_indices)


def _split(velocities: Any) -> tuple[Any, Any]:
    if velocities is None:
        return None, None
    velocities = np.asarray(velocities, np.float32)
    return velocities[:, :3], velocities[:, 3:]
