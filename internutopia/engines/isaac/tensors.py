"""Tensors of Isaac Sim's physics, `omni.physics.tensors`, as `TensorAccess` has them.

Names and shapes: github.com/NVIDIA-Omniverse/PhysX (BSD-3), `omni.physics.tensors`. It is what `ovphysx` reads and
writes, too. On a GPU states are torch tensors there, properties of bodies, joints and shapes are tensors of the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.isaac.app import IsaacSim
from internutopia.engines.physx.tensors import Columns, ContactForces, ContactPoints, Floats
from internutopia.util.arrays import to_host

_MOST_CONTACTS = 16  # of a collider at once
# What `get_...` and `set_...` of a view call a kind of columns
_STATES = {
    'ROOT_POSE': 'root_transforms',
    'ROOT_VELOCITY': 'root_velocities',
    'POSE': 'transforms',
    'VELOCITY': 'velocities',
    'DOF_POSITION': 'dof_positions',
    'DOF_VELOCITY': 'dof_velocities',
    'DOF_POSITION_TARGET': 'dof_position_targets',
    'DOF_VELOCITY_TARGET': 'dof_velocity_targets',
    'DOF_ACTUATION_FORCE': 'dof_actuation_forces',
    'LINK_INCOMING_JOINT_FORCE': 'link_incoming_joint_force',
}
_PROPERTIES = {
    'DOF_STIFFNESS': 'dof_stiffnesses',
    'DOF_DAMPING': 'dof_dampings',
    'DOF_MAX_FORCE': 'dof_max_forces',
    'DOF_ARMATURE': 'dof_armatures',
    'DOF_FRICTION_PROPERTIES': 'dof_friction_properties',
    'BODY_MASS': 'masses',
    'BODY_COM_POSE': 'coms',
    'BODY_INERTIA': 'inertias',
    'MASS': 'masses',
    'COM_POSE': 'coms',
    'INERTIA': 'inertias',
    'SHAPE_FRICTION_AND_RESTITUTION': 'material_properties',
}


class KitColumns(Columns):
    """One quantity of `count` things in each slot; see `Columns`.

    Args:
        view: of Isaac Sim.
        name: of the quantity there, `get_<name>`.
        rows: of the view, by slot and thing, `(slots, count)`.
        device: on which it takes values; None for numpy's.
        origins: of the slots `(slots, 3)` [m], for poses.
    """

    def __init__(self, view: Any, name: str, rows: NDArray[np.intp], device: str | None, origins: Floats | None = None):
        self._view, self._name, self._rows, self._device = view, name, rows, device
        self._origins = None if origins is None else origins[:, None]
        self._native = _host(getattr(view, f'get_{name}')()).copy()
        inner = self._native.shape[1:]
        self.shape = (*rows.shape, *(() if name == 'masses' and inner == (1,) else inner))
        self.values: Floats = np.zeros(self.shape, np.float32)

    @override
    def read(self) -> Floats:
        self._native[...] = _host(getattr(self._view, f'get_{self._name}')()).reshape(self._native.shape)
        self.values[...] = self._native[self._rows].reshape(self.shape)
        if self._origins is not None:
            self.values[..., :3] -= self._origins
        return self.values

    @override
    def write(self, slots: NDArray[np.intp] | None = None) -> None:
        values = self.values
        if self._origins is not None:
            values = values.copy()
            values[..., :3] += self._origins
        self._native[self._rows] = values.reshape(*self._rows.shape, *self._native.shape[1:])
        rows = (self._rows if slots is None else self._rows[slots]).ravel()
        if len(rows):
            getattr(self._view, f'set_{self._name}')(self._given(self._native), self._given(rows.astype(np.int32)))

    @override
    def names(self) -> tuple[str, ...]:
        return tuple(self._view.shared_metatype.dof_names)

    @override
    def links(self) -> tuple[str, ...]:
        return tuple(self._view.shared_metatype.link_names)

    def _given(self, values: NDArray[Any]) -> Any:
        if self._device is None:
            return values
        import torch

        return torch.as_tensor(values, device=self._device)


class KitContactForces(ContactForces):
    """Net contact forces; see `ContactForces`. `filtered`: with those that the view was made for, friction included."""

    def __init__(self, view: Any, rows: NDArray[np.intp], dt: float, filtered: bool):
        self._view, self._rows, self._dt, self._filtered = view, rows, dt, filtered

    @override
    def read(self) -> Floats:
        if not self._filtered:
            return _host(self._view.get_net_contact_forces(self._dt)).reshape(-1, 3)[self._rows]
        shape = self._view.sensor_count, self._view.filter_count
        forces = _host(self._view.get_contact_force_matrix(self._dt)).reshape(*shape, 3).sum(axis=1)
        friction, _, counts, starts = map(_host, self._view.get_friction_data(self._dt))
        for sensor, (count, start) in enumerate(zip(counts.reshape(shape), starts.reshape(shape), strict=True)):
            for first, last in zip(start.astype(int), (start + count).astype(int), strict=True):
                forces[sensor] += friction.reshape(-1, 3)[first:last].sum(axis=0)
        return forces[self._rows]


class KitContactPoints(ContactPoints):
    """The `most` strongest contacts in each slot; see `ContactPoints`."""

    def __init__(self, view: Any, rows: NDArray[np.intp], dt: float, most: int, origins: Floats):
        self._view, self._rows, self._dt, self._most, self._origins = view, rows, dt, most, origins

    @override
    def read(self) -> Floats:
        forces, points, normals, _, counts, starts, _ = map(_host, self._view.get_raw_contact_data(self._dt))
        strongest = np.zeros((len(self._rows), self._most, 6), np.float32)
        firsts, lasts = starts.astype(int).ravel(), (starts + counts).astype(int).ravel()
        for slot, rows in enumerate(self._rows):
            own = np.concatenate([np.arange(int(firsts[row]), int(lasts[row])) for row in rows.tolist()])
            force = forces.ravel()[own]
            order = np.argsort(-np.abs(force), kind='stable')[: self._most]
            place = points.reshape(-1, 3)[own[order]] - self._origins[slot]
            away = -np.sign(force[order])[:, None] * normals.reshape(-1, 3)[own[order]]
            strongest[slot, : len(order)] = np.concatenate([place, away], axis=1)
        return strongest


class Views:
    """Views of Isaac Sim on the physics that runs, `sim`'s."""

    def __init__(self, physics: Any, sim: IsaacSim):
        self._physics, self._dt = physics, sim.dt
        self._state_device, self._property_device = (sim.config.device, 'cpu') if sim.gpu else (None, None)
        self._views: dict[tuple[str, ...], Any] = {}

    def columns(self, kind: str, slots: Sequence[str], paths: Sequence[str], origins: Floats | None) -> KitColumns:
        """Return a quantity, by its name for `TensorAccess.columns`, of things at paths below each slot."""
        articulated = kind.startswith('ARTICULATION_')
        name = kind.removeprefix('ARTICULATION_' if articulated else 'RIGID_BODY_')
        everywhere = tuple(f'{slot}/{path}' for slot in slots for path in paths)
        if everywhere not in self._views:
            make = self._physics.create_articulation_view if articulated else self._physics.create_rigid_body_view
            self._views[everywhere] = make(list(everywhere))
        view = self._views[everywhere]
        found = view.prim_paths
        if articulated:  # found at its root link or at the joint that fixes it
            found = [path.rpartition('/')[0] for path in found]
            everywhere = tuple(path.rpartition('/')[0] for path in everywhere)
        state = name in _STATES
        device = self._state_device if state else self._property_device
        rows = _rows(found, everywhere, len(slots))
        return KitColumns(view, _STATES[name] if state else _PROPERTIES[name], rows, device, origins)

    def contact_forces(self, slots: Sequence[str], paths: Sequence[str], against: Sequence[str]) -> KitContactForces:
        """Return net contact forces on colliders at paths below each slot; see `TensorAccess.contact_forces`."""
        filters = [[f'{slot}/{path}' for path in against] for slot in slots for _ in paths] if against else []
        view, rows = self._contacts(slots, paths, filters)
        return KitContactForces(view, rows, self._dt, bool(against))

    def contact_points(
        self, slots: Sequence[str], paths: Sequence[str], most: int, origins: Floats
    ) -> KitContactPoints:
        """Return contacts of colliders at paths below each slot; see `TensorAccess.contact_points`."""
        view, rows = self._contacts(slots, paths, [])
        return KitContactPoints(view, rows, self._dt, most, origins)

    def _contacts(
        self, slots: Sequence[str], paths: Sequence[str], filters: list[list[str]]
    ) -> tuple[Any, NDArray[np.intp]]:
        sensors = [f'{slot}/{path}' for slot in slots for path in paths]
        view = self._physics.create_rigid_contact_view(
            sensors, filter_patterns=filters, max_contact_data_count=_MOST_CONTACTS * len(sensors)
        )
        return view, _rows(view.sensor_paths, sensors, len(slots))


def _rows(found: Sequence[str], wanted: Sequence[str], slots: int) -> NDArray[np.intp]:
    """Return the rows of a view by slot and thing, from the paths of its rows and of things by slot."""
    row_of = {path: row for row, path in enumerate(found)}
    return np.array([row_of[path] for path in wanted], np.intp).reshape(slots, -1)


def _host(values: Any) -> NDArray[Any]:
    """Return an array of numpy or torch on the host."""
    return np.asarray(to_host(values))
