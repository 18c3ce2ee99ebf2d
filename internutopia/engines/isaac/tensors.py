"""Tensors of Isaac Sim's physics, `omni.physics.tensors`, as `TensorAccess` has them.

Names and shapes: github.com/NVIDIA-Omniverse/PhysX (BSD-3), `omni.physics.tensors`. It is what `ovphysx` reads and
writes, too. On a GPU states are torch tensors there, properties of bodies, joints and shapes are tensors of the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.physx.tensors import Columns, ContactForces, ContactPoints, Floats, strongest
from internutopia.util.arrays import to_host

# What `get_...` and `set_...` of a view call a kind of columns, without `ARTICULATION_`, `RIGID_BODY_` and `BODY_`
STATES = {
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
PROPERTIES = {
    'DOF_STIFFNESS': 'dof_stiffnesses',
    'DOF_DAMPING': 'dof_dampings',
    'DOF_MAX_FORCE': 'dof_max_forces',
    'DOF_ARMATURE': 'dof_armatures',
    'DOF_FRICTION_PROPERTIES': 'dof_friction_properties',
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
        firsts, lasts = (values.reshape(shape).astype(int) for values in (starts, starts + counts))
        for pair in np.ndindex(shape):
            forces[pair[0]] += friction.reshape(-1, 3)[firsts[pair] : lasts[pair]].sum(axis=0)
        return forces[self._rows]


class KitContactPoints(ContactPoints):
    """The `most` strongest contacts in each slot; see `ContactPoints`."""

    def __init__(self, view: Any, rows: NDArray[np.intp], dt: float, most: int, origins: Floats):
        self._view, self._rows, self._dt, self._most, self._origins = view, rows, dt, most, origins

    @override
    def read(self) -> Floats:
        forces, points, normals, _, counts, starts, _ = map(_host, self._view.get_raw_contact_data(self._dt))
        found = np.zeros((len(self._rows), self._most, 6), np.float32)
        firsts, lasts = starts.astype(int).ravel().tolist(), (starts + counts).astype(int).ravel().tolist()
        for slot, rows in enumerate(self._rows.tolist()):
            own = np.concatenate([np.arange(firsts[row], lasts[row]) for row in rows])
            places = points.reshape(-1, 3)[own] - self._origins[slot]
            strongest(forces.ravel()[own], places, normals.reshape(-1, 3)[own], found[slot])
        return found


def _host(values: Any) -> NDArray[Any]:
    """Return an array of numpy or torch on the host."""
    return np.asarray(to_host(values))
