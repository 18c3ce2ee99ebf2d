"""Isaac Sim 6.x: the experimental core, which replaces `isaacsim.core.api`. Its arrays are Warp's."""

from __future__ import annotations

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
)
from internutopia.rendering.camera import half_angle


class ExperimentalSim(IsaacSim):
    """A stage behind a `SimulationManager`."""

    @property
    @override
    def physics_scene(self) -> str:
        return self.names.SimulationManager.get_physics_scenes()[0].path

    @override
    def new_stage(self) -> None:
        names = self.names
        names.app.stop()
        names.stage.create_new_stage()
        names.stage.set_stage_up_axis('Z')
        names.stage.set_stage_units(meters_per_unit=1.0)
        names.SimulationManager.setup_simulation(dt=self.dt, device=self.config.device)
        names.RenderingManager.set_dt(float(self.config.rendering_dt))
        if self.config.use_fabric:
            names.SimulationManager.enable_fabric(True)

    @override
    def add_frame(self, path: str, position: Any, orientation: Any = None, scale: Any = None) -> None:
        self._place(path, 'Xform', position, orientation, scale)

    @override
    def add_asset(self, file: str, path: str) -> None:
        self.names.stage.add_reference_to_stage(usd_path=file, path=path)

    @override
    def add_body(self, path: str, mass: float | None, density: float | None) -> None:
        self.names.RigidPrim(path, masses=mass, densities=density)

    @override
    def add_camera(self, path: str, position: Any, orientation: Any, fovy: float) -> None:
        self._place(path, 'Camera', position, orientation, None)
        camera = self.names.Camera(path)
        aperture = camera.get_apertures()[1].numpy()
        camera.set_focal_lengths(0.5 * aperture / half_angle(fovy))

    @override
    def add_box(self, path: str, box: Box) -> None:
        self.names.Cube(path, sizes=1.0, colors=[list(box.color)], scales=[list(box.size)])
        if box.collider:
            self.names.GeomPrim(path, apply_collision_apis=True)
        if box.dynamic:
            self.add_body(path, box.mass, None)

    @override
    def start(self) -> None:
        self.names.app.play()
        self.names.app.update_app(steps=1)

    @override
    def step(self) -> None:
        self.names.SimulationManager.step(steps=1)

    @override
    def render(self) -> None:
        self.names.RenderingManager.render()

    @override
    def articulations(self, paths: Sequence[str]) -> ArticulationHandle:
        view = self.names.Articulation(list(paths))
        return ExperimentalArticulations(view, view.paths, _floats)

    @override
    def bodies(self, paths: Sequence[str], *, contacts: bool = False) -> BodyHandle:
        view = self.names.RigidPrim(list(paths))
        if contacts:
            view.set_enabled_contact_tracking(True)
        return ExperimentalBodies(view, view.paths, _floats)

    @override
    def prims(self, paths: Sequence[str]) -> PrimHandle:
        view = self.names.XformPrim(list(paths), reset_xform_op_properties=True)
        return PrimHandle(view, view.paths, _floats)

    @override
    def cameras(self, paths: Sequence[str], size: Size, annotators: Sequence[str], *, added: bool) -> CameraHandle:
        width, height = size
        sensor = self.load_camera_class()(list(paths), resolution=(height, width), annotators=list(annotators))
        if added:
            aperture = sensor.camera.get_apertures()[1].numpy()
            sensor.camera.set_apertures(horizontal_apertures=aperture * width / height)
        return CameraHandle(sensor, sensor.camera, sensor.camera.paths, _floats)

    @override
    def close(self) -> None:
        self.names.app.stop()

    def _place(self, path: str, kind: str, position: Any, orientation: Any, scale: Any) -> None:
        self.names.stage.define_prim(path, kind)
        self.names.XformPrim(
            path,
            translations=_one(position),
            orientations=_one(orientation),
            scales=_one(scale),
            reset_xform_op_properties=True,
        )


class _Moving(MovingHandle):
    """Views over prims that have velocities."""

    @override
    def velocities(self) -> tuple[Floats, Floats]:
        linear, angular = self._view.get_velocities()
        return linear.numpy(), angular.numpy()

    @override
    def set_velocities(self, linear: Any, angular: Any, rows: Rows) -> None:
        self._view.set_velocities(linear_velocities=_floats(linear), angular_velocities=_floats(angular), indices=rows)


class ExperimentalBodies(_Moving, BodyHandle):
    """A `RigidPrim`."""

    @override
    def scale_masses(self, masses: Any, rows: Rows) -> None:
        masses = _floats(masses)
        factors = masses / self.masses()[rows]
        inertias = self._view.get_inertias().numpy().reshape(-1, 9)[rows]
        self._view.set_masses(masses[:, None], indices=rows)
        self._view.set_inertias(inertias * factors[:, None], indices=rows)


class ExperimentalArticulations(_Moving, ArticulationHandle):
    """An `Articulation`."""

    @override
    def joint_positions(self) -> Floats:
        return self._view.get_dof_positions().numpy()

    @override
    def joint_velocities(self) -> Floats:
        return self._view.get_dof_velocities().numpy()

    @override
    def joint_efforts(self) -> Floats:
        return self._view.get_dof_projected_joint_forces().numpy()

    @override
    def set_joint_positions(self, values: Any, rows: Rows) -> None:
        self._view.set_dof_positions(_floats(values), indices=rows)

    @override
    def set_joint_velocities(self, values: Any, rows: Rows) -> None:
        self._view.set_dof_velocities(_floats(values), indices=rows)

    @override
    def set_targets(self, kind: str, values: Any, rows: Rows) -> None:
        if kind == 'position':
            self._view.set_dof_position_targets(_floats(values), indices=rows)
        elif kind == 'velocity':
            self._view.set_dof_velocity_targets(_floats(values), indices=rows)
        else:
            self._view.set_dof_efforts(_floats(values), indices=rows)

    @override
    def set_gains(self, stiffness: Any, damping: Any, rows: Rows) -> None:
        self._view.set_dof_gains(stiffnesses=_floats(stiffness), dampings=_floats(damping), indices=rows)

    @override
    def set_self_collisions(self, enabled: bool, rows: Rows) -> None:
        self._view.set_enabled_self_collisions(enabled, indices=rows)

    @override
    def disable_gravity(self) -> None:
        self._view.set_link_enabled_gravities(False)


def _floats(values: Any) -> Floats:
    return np.asarray(values, np.float32)


def _one(values: Any) -> Floats | None:
    """Return the only row of a view."""
    return None if values is None else _floats([values])
