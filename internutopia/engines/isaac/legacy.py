"""Isaac Sim 4.5 and 5.x: `isaacsim.core.api` and `isaacsim.core.prims`, or the same under the names of `omni.isaac`.

On a GPU its arrays are tensors of torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.engines.isaac.api import (
    ArticulationHandle,
    BodyHandle,
    Box,
    CameraHandle,
    Floats,
    IsaacSim,
    MovingHandle,
    PrimHandle,
    Rows,
    Size,
    host,
)
from internutopia.rendering.camera import half_angle

_APERTURE = 15.2908  # height, tenths of the stage's unit: the default of `UsdGeomCamera`
_NUMBERS = itertools.count()  # the names of views have to differ


class LegacySim(IsaacSim):
    """A stage behind a `World`."""

    _world: Any
    _waiting: list[Any]  # views whose physics is not there yet

    @property
    @override
    def physics_scene(self) -> str:
        return '/physicsScene'

    @override
    def new_stage(self) -> None:
        names = self.names
        self._waiting = []
        names.World.clear_instance()  # else the next one is the same
        names.stage.create_new_stage()
        self._world = names.World(
            physics_dt=self.dt,
            rendering_dt=float(self.config.rendering_dt),
            stage_units_in_meters=1.0,
            physics_prim_path=self.physics_scene,
            backend='numpy',
            device=self.config.device,
        )
        if self.config.use_fabric:
            self._world.get_physics_context().enable_fabric(True)

    @override
    def add_frame(self, path: str, position: Any, orientation: Any = None, scale: Any = None) -> None:
        self._place(path, 'Xform', position, orientation, scale)

    @override
    def add_asset(self, file: str, path: str) -> None:
        self.names.stage.add_reference_to_stage(usd_path=file, prim_path=path)

    @override
    def add_body(self, path: str, mass: float | None, density: float | None) -> None:
        self.names.RigidPrim(
            prim_paths_expr=path,
            name=_name('body'),
            reset_xform_properties=False,
            masses=None if mass is None else self.native([mass]),
            densities=None if density is None else self.native([density]),
        )

    @override
    def add_camera(self, path: str, position: Any, orientation: Any, fovy: float) -> None:
        self._place(path, 'Camera', position, orientation, None)
        optics = {'verticalAperture': _APERTURE, 'focalLength': 0.5 * _APERTURE / half_angle(fovy)}
        for attribute, value in optics.items():
            self.names.prims.set_prim_attribute_value(path, attribute, value)

    @override
    def add_box(self, path: str, box: Box) -> None:
        appearance = {'scale': np.array(box.size), 'color': np.array(box.color), 'size': 1.0}
        if not box.dynamic:
            cuboid = self.names.FixedCuboid if box.collider else self.names.VisualCuboid
            cuboid(prim_path=path, name=path, **appearance)
            return
        self.names.DynamicCuboid(prim_path=path, name=path, mass=box.mass, **appearance)
        if not box.collider:
            self.names.prims.set_prim_attribute_value(path, 'physics:collisionEnabled', False)

    @override
    def start(self) -> None:
        self._world.reset()
        for view in self._waiting:
            view.initialize()

    @override
    def step(self) -> None:
        self._world.step(render=False)

    @override
    def render(self) -> None:
        self._world.render()

    @override
    def articulations(self, paths: Sequence[str]) -> ArticulationHandle:
        view = self.names.Articulation(
            prim_paths_expr=list(paths), name=_name('articulations'), reset_xform_properties=False
        )
        view.initialize()
        return LegacyArticulations(view, view.prim_paths, self.native, self.indices)

    @override
    def bodies(self, paths: Sequence[str], *, contacts: bool = False) -> BodyHandle:
        view = self.names.RigidPrim(
            prim_paths_expr=list(paths),
            name=_name('bodies'),
            reset_xform_properties=False,
            track_contact_forces=contacts,
            prepare_contact_sensors=contacts,
        )
        if contacts:
            self._waiting.append(view)
        else:
            view.initialize()
        return LegacyBodies(view, view.prim_paths, self.native, self.indices)

    @override
    def prims(self, paths: Sequence[str]) -> PrimHandle:
        view = self.names.XFormPrim(prim_paths_expr=list(paths), name=_name('prims'))
        return PrimHandle(view, view.prim_paths, self.native, self.indices)

    @override
    def cameras(self, paths: Sequence[str], size: Size, annotators: Sequence[str], *, added: bool) -> CameraHandle:
        view = self.load_camera_class()(
            prim_paths_expr=list(paths),
            name=_name('cameras'),
            camera_resolution=size,
            output_annotators=list(annotators),
        )
        view.initialize()
        if added:
            width, height = size
            view.set_horizontal_apertures([aperture * width / height for aperture in view.get_vertical_apertures()])
        return LegacyCameras(view, view, view.prim_paths, self.native, self.indices)

    @override
    def close(self) -> None:
        self._world.stop()
        self.names.World.clear_instance()

    def native(self, values: Any) -> Any:
        """Return an array of the kind that the views of this world take."""
        values = np.asarray(values, np.float32)
        if self._world.backend != 'torch':
            return values
        import torch

        return torch.as_tensor(values, device=self._world.device)

    def indices(self, rows: Rows) -> Any:
        """Return rows of the kind that the views of this world take."""
        if self._world.backend != 'torch':
            return rows
        import torch

        return torch.as_tensor(rows, device=self._world.device)

    def _place(self, path: str, kind: str, position: Any, orientation: Any, scale: Any) -> None:
        if not self.names.prims.is_prim_path_valid(path):
            self.names.prims.define_prim(prim_path=path, prim_type=kind)
        self.names.XFormPrim(
            prim_paths_expr=path,
            name=_name('frame'),
            translations=self.native([position]),
            orientations=None if orientation is None else self.native([orientation]),
            scales=None if scale is None else self.native([scale]),
        )


class _Moving(MovingHandle):
    """Views over prims that have velocities."""

    @override
    def velocities(self) -> tuple[Floats, Floats]:
        velocities = host(self._view.get_velocities())
        return velocities[:, :3], velocities[:, 3:]

    @override
    def set_velocities(self, linear: Any, angular: Any, rows: Rows) -> None:
        velocities = np.concatenate([linear, angular], axis=1)
        self._view.set_velocities(velocities=self._native(velocities), indices=self._indices(rows))


class LegacyBodies(_Moving, BodyHandle):
    """A `RigidPrim`."""

    @override
    def scale_masses(self, masses: Any, rows: Rows) -> None:
        factors = np.asarray(masses) / self.masses()[rows]
        inertias = host(self._view.get_inertias()).reshape(-1, 9)[rows]
        indices = self._indices(rows)
        self._view.set_masses(masses=self._native(masses), indices=indices)
        self._view.set_inertias(values=self._native(inertias * factors[:, None]), indices=indices)


class LegacyArticulations(_Moving, ArticulationHandle):
    """An `Articulation`, the view over many."""

    @override
    def joint_positions(self) -> Floats:
        return host(self._view.get_joint_positions())

    @override
    def joint_velocities(self) -> Floats:
        return host(self._view.get_joint_velocities())

    @override
    def joint_efforts(self) -> Floats:
        return host(self._view.get_measured_joint_efforts())

    @override
    def set_joint_positions(self, values: Any, rows: Rows) -> None:
        self._view.set_joint_positions(positions=self._native(values), indices=self._indices(rows))

    @override
    def set_joint_velocities(self, values: Any, rows: Rows) -> None:
        self._view.set_joint_velocities(velocities=self._native(values), indices=self._indices(rows))

    @override
    def set_targets(self, kind: str, values: Any, rows: Rows) -> None:
        values, indices = self._native(values), self._indices(rows)
        if kind == 'position':
            self._view.set_joint_position_targets(positions=values, indices=indices)
        elif kind == 'velocity':
            self._view.set_joint_velocity_targets(velocities=values, indices=indices)
        else:
            self._view.set_joint_efforts(efforts=values, indices=indices)

    @override
    def set_gains(self, stiffness: Any, damping: Any, rows: Rows) -> None:
        kps, kds = self._native(stiffness), self._native(damping)
        self._view.set_gains(kps=kps, kds=kds, indices=self._indices(rows))

    @override
    def set_self_collisions(self, enabled: bool, rows: Rows) -> None:
        indices = self._indices(rows)
        self._view.set_enabled_self_collisions(flags=self._native(np.full(len(rows), enabled)), indices=indices)

    @override
    def disable_gravity(self) -> None:
        shape = len(self.paths), self._view.num_bodies
        self._view.set_body_disable_gravity(values=self._native(np.ones(shape)))


class LegacyCameras(CameraHandle):
    """A `CameraView`, which has axes of its own for poses."""

    _axes = {'camera_axes': 'usd'}


def _name(kind: str) -> str:
    return f'internutopia_{kind}_{next(_NUMBERS)}'
