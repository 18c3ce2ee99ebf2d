"""`omni.physics.tensors`, by the columns of `ovphysx`; rows of views are in the reverse order of their paths."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.runtime import PhysxContactForces
from isaac_sim.simulator import Physics, current

Floats = NDArray[np.float32]

_ARTICULATION = {
    'root_transforms': 'ROOT_POSE',
    'root_velocities': 'ROOT_VELOCITY',
    'dof_positions': 'DOF_POSITION',
    'dof_velocities': 'DOF_VELOCITY',
    'dof_position_targets': 'DOF_POSITION_TARGET',
    'dof_velocity_targets': 'DOF_VELOCITY_TARGET',
    'dof_actuation_forces': 'DOF_ACTUATION_FORCE',
    'dof_stiffnesses': 'DOF_STIFFNESS',
    'dof_dampings': 'DOF_DAMPING',
    'dof_max_forces': 'DOF_MAX_FORCE',
    'dof_armatures': 'DOF_ARMATURE',
    'dof_friction_properties': 'DOF_FRICTION_PROPERTIES',
    'link_incoming_joint_force': 'LINK_INCOMING_JOINT_FORCE',
    'masses': 'BODY_MASS',
    'coms': 'BODY_COM_POSE',
    'inertias': 'BODY_INERTIA',
    'material_properties': 'SHAPE_FRICTION_AND_RESTITUTION',
}
_BODY = {
    'transforms': 'POSE',
    'velocities': 'VELOCITY',
    'masses': 'MASS',
    'coms': 'COM_POSE',
    'inertias': 'INERTIA',
    'material_properties': 'SHAPE_FRICTION_AND_RESTITUTION',
}


def create_simulation_view(frontend_name: str, stage_id: int = -1) -> SimulationView:
    """`omni.physics.tensors.create_simulation_view`."""
    assert frontend_name == 'numpy', 'the stand-in has the CPU only'
    return SimulationView(current().running_physics())


class SimulationView:
    """Makes views."""

    def __init__(self, physics: Physics):
        self._physics = physics

    def create_articulation_view(self, pattern: Sequence[str]) -> View:
        """Articulations at paths."""
        return View(self._physics, pattern, 'ARTICULATION', _ARTICULATION)

    def create_rigid_body_view(self, pattern: Sequence[str]) -> View:
        """Rigid bodies at paths."""
        return View(self._physics, pattern, 'RIGID_BODY', _BODY)

    def create_rigid_contact_view(
        self,
        pattern: Sequence[str],
        filter_patterns: Sequence[Sequence[str]] = (),
        max_contact_data_count: int = 0,
    ) -> ContactView:
        """Contacts of colliders or bodies at paths, also with what is at others."""
        return ContactView(self._physics, pattern, filter_patterns, max_contact_data_count)


class View:
    """Things of one kind: `get_<name>()` and `set_<name>(data, indices)` by the names above."""

    def __init__(self, physics: Physics, paths: Sequence[str], prefix: str, names: dict[str, str]):
        self.prim_paths = list(paths)[::-1]
        self._physics, self._prefix, self._names = physics, prefix, names
        self._bindings: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        verb, _, quantity = name.partition('_')
        if verb not in ('get', 'set') or quantity not in self._names:
            raise AttributeError(name)
        binding = self._binding(quantity)
        return (lambda: self._get(binding)) if verb == 'get' else (lambda data, rows: self._set(binding, data, rows))

    @property
    def shared_metatype(self) -> Any:
        """Names of dofs and links."""
        binding = self._binding('dof_positions')

        class Metatype:
            dof_names, link_names = list(binding.dof_names), list(binding.body_names)

        return Metatype

    def close(self) -> None:
        for binding in self._bindings.values():
            binding.destroy()

    def _get(self, binding: Any) -> Floats:
        self._check()
        values = np.zeros(binding.shape, np.float32)
        binding.read(values)
        return self._shown(values[self._order(binding)])

    def _set(self, binding: Any, data: Floats, rows: NDArray[np.int32]) -> None:
        self._check()
        assert data.dtype == np.float32 and len(data) == len(self.prim_paths)
        values = np.zeros(binding.shape, np.float32)
        values[self._order(binding)] = data.reshape(binding.shape)
        binding.write(values, indices=np.ascontiguousarray(self._order(binding)[rows], np.int32))

    def _shown(self, values: Floats) -> Floats:
        return values[:, None] if values.ndim == 1 else values  # masses of bodies are a column

    def _check(self) -> None:
        if current().physics is not self._physics:
            raise Exception('this view is of physics that was stopped')

    def _order(self, binding: Any) -> NDArray[np.intp]:
        row = {path: k for k, path in enumerate(binding.prim_paths)}
        return np.array([row[path] for path in self.prim_paths], np.intp)

    def _binding(self, quantity: str) -> Any:
        from ovphysx.types import TensorType

        if quantity not in self._bindings:
            if not self._bindings:
                self._physics.open.append(self)
            kind = TensorType[f'{self._prefix}_{self._names[quantity]}']
            with warnings.catch_warnings():
                warnings.simplefilter('ignore', DeprecationWarning)
                binding = self._physics.physx.create_tensor_binding(prim_paths=self.prim_paths, tensor_type=kind)
            self._bindings[quantity] = binding
        return self._bindings[quantity]


class ContactView:
    """Contacts of sensors."""

    def __init__(self, physics: Physics, paths: Sequence[str], filters: Sequence[Sequence[str]], most: int):
        from ovphysx.types import ContactSelection, SimObjectType

        self.sensor_paths = list(paths)[::-1]
        own = list(filters)[::-1] if filters else [()] * len(self.sensor_paths)
        self.filter_count, self._most = len(own[0]), most
        selections = [ContactSelection(path, tuple(each)) for path, each in zip(self.sensor_paths, own, strict=True)]
        self._physx = physics.physx
        self._query = self._physx.query(SimObjectType.CONTACT_SENSOR, contacts=selections, metadata=False).wait()
        physics.open.append(self)

    @property
    def sensor_count(self) -> int:
        return len(self.sensor_paths)

    def get_net_contact_forces(self, dt: float) -> Floats:
        """Forces along normals."""
        return self._forces('netNormalContactForce')

    def get_contact_force_matrix(self, dt: float) -> Floats:
        """Forces along normals by filter; here all of them are with the first one."""
        matrix = np.zeros((self.sensor_count, self.filter_count, 3), np.float32)
        matrix[:, 0] = self._forces('normalContactForceMatrix')
        return matrix

    def get_friction_data(self, dt: float) -> tuple[NDArray[Any], ...]:
        """Friction forces and points in a row, and how many each pair has from where on; here one a sensor."""
        shape = self.sensor_count, self.filter_count
        counts, starts = np.zeros(shape, np.uint32), np.zeros(shape, np.uint32)
        counts[:, 0], starts[:, 0] = 1, np.arange(self.sensor_count)
        forces = np.zeros((self._most, 3), np.float32)
        forces[: self.sensor_count] = self._forces('frictionContactForceMatrix')
        return forces, np.zeros((self._most, 3), np.float32), counts, starts

    def get_raw_contact_data(self, dt: float) -> tuple[NDArray[Any], ...]:
        """Forces, points, normals, distances and bodies in a row, and how many each sensor has from where on."""
        if current().legacy:
            raise AttributeError('get_raw_contact_data')
        found: dict[str, dict[str, list[Floats]]] = {path: {} for path in self.sensor_paths}
        kinds = ['rawContactForce', 'rawContactPoint', 'rawContactNormal']
        with self._physx.read(self._query, kinds).wait() as result:
            while (group := result.fetch_next().wait()) is not None:
                kind = result.dictionary.token_to_string(group.attribute)
                for path, tensor in zip(
                    result.dictionary.get_path_strings(group.prim_list), group.tensors, strict=True
                ):
                    found[path].setdefault(kind, []).append(np.array(tensor, np.float32))
        rows: list[list[Floats]] = [[], [], []]
        counts = np.zeros(self.sensor_count, np.uint32)
        for k, path in enumerate(self.sensor_paths):
            for kind, own in zip(kinds, rows, strict=True):
                own += found[path].get(kind, [])
            counts[k] = sum(map(len, found[path].get(kinds[0], [])))
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.uint32)
        arrays = [np.zeros((self._most, width), np.float32) for width in (1, 3, 3)]
        for array, own in zip(arrays, rows, strict=True):
            if own:
                values = np.concatenate(own).reshape(-1, array.shape[1])
                array[: len(values)] = values
        separations, bodies = np.zeros((self._most, 1), np.float32), np.zeros(self._most, np.uint64)
        return *arrays, separations, counts, starts, bodies

    def close(self) -> None:
        self._query.close_sync()

    def _forces(self, kind: str) -> Floats:
        forces = PhysxContactForces(self._physx, self._query, self.sensor_paths, (self.sensor_count, 1), [kind])
        return forces.read()[:, 0]
