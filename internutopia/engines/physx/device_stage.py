"""Stages of PhysX whose tensors are torch's, on a GPU: nothing of a state, drive or force is copied to the host.

All slots are in one physics scene, which a GPU needs, and are kept apart by collision groups. On the device `'cpu'` the
same is simulated on the CPU, for tests. With `ovphysx`, as `runtime.py`.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.physx.runtime import PhysxColumns, PhysxStage, slot_name
from internutopia.engines.physx.stage import StageLayout, scene_text
from internutopia.engines.physx.tensors import Columns, ContactForces

_BY_HOST = ('MASS', 'COM_POSE', 'INERTIA', 'SHAPE_FRICTION_AND_RESTITUTION')  # how names of what is on the host end
_ON_CPU = 1  # kDLCPU
_GPU_VERTICES = 64  # of a convex hull
_LIMIT = 'hullVertexLimit = '


class DeviceStage(PhysxStage):
    """`slots` copies of what a layout for a shared scene describes, on a device."""

    shared = False  # with other stages

    def __init__(self, layout: StageLayout, slots: int, device: str):
        self._device = device
        text, model = layout.text, layout.movers.model
        if device != 'cpu':
            text = text.replace(f'{_LIMIT}255', f'{_LIMIT}{_GPU_VERTICES}')
        scene = scene_text(model, 'scene', shared=True, gpu=device != 'cpu')
        self._attach(device, slots, f'{scene}def Xform "{slot_name(0)}"\n{{\n{text}}}\n')

    @override
    def _new_instance(self) -> Any:
        if self._device == 'cpu':
            return super()._new_instance()
        from ovphysx import ConfigKey, PhysX, PhysXConfig

        # the tensors are those on the GPU
        physx = PhysX(config=PhysXConfig(carbonite_overrides={'/physics/suppressReadback': True}))
        physx.set_config(ConfigKey.ACTIVE_CUDA_GPUS, self._device.partition(':')[2])
        return physx

    @override
    def columns(self, kind: str, paths: Sequence[str]) -> PhysxColumns:
        """Return a quantity of things at paths below each env: tensors, but numpy arrays of masses and frictions."""
        if kind.endswith(_BY_HOST):
            return super().columns(kind, paths)
        columns = DeviceColumns(*self._bind(kind, paths), self._device)
        self._open.append(columns)
        return cast(PhysxColumns, columns)

    @override
    def contact_forces(self, paths: Sequence[str], against: Sequence[str] = ()) -> Any:
        """Return forces on bodies, at the place of their first collider: a GPU measures none on single colliders."""
        bodies = list(dict.fromkeys(map(body_of, paths)))
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', DeprecationWarning)  # what replaces it is not by tensors
            binding = self._physx.create_contact_binding(
                sensor_patterns=self._everywhere(bodies),
                filter_patterns=[
                    path for slot in range(self.slots) for _ in bodies for path in self._in(slot, against)
                ],
                filters_per_sensor=len(against),
            )
        places = [[body_of(path) for path in paths].index(body) for body in bodies]
        forces = DeviceContacts(binding, self._rows(binding.sensor_paths, bodies), places, len(paths), self._device)
        self._open.append(forces)
        return forces


def body_of(collider: str) -> str:
    """Return the path of the body that a collider belongs to."""
    return collider.rsplit('/', 2)[0]


class DeviceColumns(Columns):
    """`PhysxColumns` with torch tensors; slots to write are given by a mask `(slots,)`."""

    def __init__(self, binding: Any, rows: NDArray[np.intp], device: str):
        on_host = int(binding.native_device.device_type.value) == _ON_CPU
        self._binding = binding
        self._rows = torch.from_numpy(rows).to(device)
        self._buffer = torch.zeros(binding.shape, device='cpu' if on_host else device)
        self._mask = torch.zeros(rows.size, dtype=torch.uint8, device=self._buffer.device)
        self.shape = (*rows.shape, *binding.shape[1:])
        self.values: Any = torch.zeros(self.shape, device=device)

    @override
    def read(self) -> Any:
        self._binding.read(self._buffer)
        self.values[...] = self._buffer.to(self.values.device)[self._rows]
        return self.values

    @override
    def write(self, slots: Any = None) -> None:
        own = torch.empty_like(self._buffer, device=self.values.device)
        own[self._rows] = self.values
        self._buffer.copy_(own)
        if slots is None:
            self._binding.write(self._buffer)
            return
        self._mask[self._rows] = slots.to(torch.uint8)[:, None].expand(self._rows.shape)
        self._binding.write(self._buffer, mask=self._mask)

    @override
    def names(self) -> tuple[str, ...]:
        return tuple(self._binding.dof_names)

    @override
    def links(self) -> tuple[str, ...]:
        return tuple(self._binding.body_names)

    def close(self) -> None:
        """Let go of PhysX."""
        self._binding.destroy()


class DeviceContacts(ContactForces):
    """Contact forces on bodies of all slots, as tensors `(slots, count, 3)`, zero but at some places."""

    def __init__(self, binding: Any, rows: NDArray[np.intp], places: Sequence[int], count: int, device: str):
        self._binding = binding
        self._rows = torch.from_numpy(rows).to(device)
        self._places = torch.tensor(places, device=device)
        self._forces = torch.zeros((len(rows), count, 3), device=device)
        sensors, filters = binding.sensor_count, binding.filter_count
        shape = (sensors, filters, 3) if filters else (sensors, 3)
        self._normal, self._friction = torch.zeros(shape, device=device), torch.zeros(shape, device=device)

    @override
    def read(self) -> Any:
        if self._normal.ndim == 3:
            self._binding.read_normal_force_matrix(self._normal)
            self._binding.read_friction_force_matrix(self._friction)
            net = (self._normal + self._friction).sum(dim=1)
        else:
            self._binding.read_net_normal_forces(self._normal)
            self._binding.read_net_friction_forces(self._friction)
            net = self._normal + self._friction
        self._forces[:, self._places] = net[self._rows]
        return self._forces

    def close(self) -> None:
        """Let go of PhysX."""
        self._binding.destroy()
