"""Stages of PhysX whose tensors are torch's, on a GPU: nothing of a state, drive or force is copied to the host.

All slots are in one physics scene, which a GPU needs. They stand on a grid, so that the broad phase finds few pairs of
bodies of different envs, and collision groups keep these apart. On the device `'cpu'` the same is simulated on the CPU,
for tests. With `ovphysx`, as `runtime.py`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import PhysxCfg
from internutopia.engines.physx.capacities import OverflowLog, capacities_of
from internutopia.engines.physx.prims import scene_text
from internutopia.engines.physx.runtime import BoundColumns, PhysxStage, slot_name
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import COMMON, POSES, ContactForces, slot_places

_BY_HOST = ('MASS', 'COM_POSE', 'INERTIA', 'SHAPE_FRICTION_AND_RESTITUTION')  # how names of what is on the host end
_ON_CPU = 1  # kDLCPU
_GPU_VERTICES = 64  # of a convex hull
_LIMIT = 'hullVertexLimit = '


class DeviceStage(PhysxStage):
    """`slots` copies of what a layout for a shared scene describes, on a device, as far apart as their envs [m]."""

    def __init__(self, layout: StageLayout, slots: int, device: str, spacing: float, buffers: PhysxCfg):
        self._device, self._overflows = device, OverflowLog()
        logging.getLogger('ovphysx').addHandler(self._overflows)
        places = slot_places(slots, spacing)
        self._origins = torch.from_numpy(places[:, None].astype(np.float32)).to(device) if places.any() else None
        text, model = layout.text, layout.movers.model
        if device != 'cpu':
            text = text.replace(f'{_LIMIT}255', f'{_LIMIT}{_GPU_VERTICES}')
        capacities = capacities_of([(layout, slots)], spacing, buffers)
        scene = scene_text(model, 'scene', shared=True, gpu=device != 'cpu', capacities=capacities)
        with self._overflows.raised(slots):
            common = f'def Xform "common"\n{{\n{layout.common}}}\n'
            prims = f'{scene}{common}def Xform "{slot_name(0)}"\n{{\n{text}}}\n'.replace(COMMON, self.common)
            self._attach(device, slots, prims, places if places.any() else None)

    @override
    def _new_instance(self) -> Any:
        return new_instance(self._device)

    @override
    def step(self, dt: float) -> None:
        with self._overflows.raised(self.slots):
            super().step(dt)

    @override
    def close(self) -> None:
        logging.getLogger('ovphysx').removeHandler(self._overflows)
        super().close()

    @override
    def columns(self, kind: str, paths: Sequence[str]) -> BoundColumns:
        """Return a quantity of things at paths below each env: tensors, but numpy arrays of masses and frictions."""
        if kind.endswith(_BY_HOST):
            return super().columns(kind, paths)
        origins = self._origins if kind.endswith(POSES) else None
        columns = DeviceColumns(*self._bind(kind, paths), self._device, origins)
        self._open.append(columns)
        return columns

    @override
    def contact_forces(self, paths: Sequence[str], against: Sequence[str] = ()) -> Any:
        """Return forces on bodies, at the place of their first collider: a GPU measures none on single colliders."""
        bodies = list(dict.fromkeys(map(body_of, paths)))
        sensors = self.paths_everywhere(bodies)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', DeprecationWarning)  # what replaces it is not by tensors
            binding = self._physx.create_contact_binding(
                sensor_patterns=sensors,
                filter_patterns=[
                    path for slot in range(self.slots) for _ in bodies for path in self.paths_in(slot, against)
                ],
                filters_per_sensor=len(against),
            )
        places = [[body_of(path) for path in paths].index(body) for body in bodies]
        rows = self.rows(binding.sensor_paths, sensors)
        forces = DeviceContacts(binding, rows, places, len(paths), self._device)
        self._open.append(forces)
        return forces


def new_instance(device: str) -> Any:
    """Return an instance of PhysX on a device, on which its tensors are."""
    from ovphysx import ConfigKey, PhysX, PhysXConfig

    if device == 'cpu':
        return PhysX()
    physx = PhysX(config=PhysXConfig(carbonite_overrides={'/physics/suppressReadback': True}))
    physx.set_config(ConfigKey.ACTIVE_CUDA_GPUS, device.partition(':')[2])
    return physx


def body_of(collider: str) -> str:
    """Return the path of the body that a collider belongs to."""
    return collider.rsplit('/', 2)[0]


class DeviceColumns(BoundColumns):
    """Columns as torch tensors; slots to write are given by a mask `(slots,)`.

    `origins` `(slots, 1, 3)` are where envs stand in PhysX, if these are poses.
    """

    def __init__(self, binding: Any, rows: NDArray[np.intp], device: str, origins: Any = None):
        super().__init__(binding, rows)
        self._origins = origins
        on_host = int(binding.native_device.device_type.value) == _ON_CPU
        self._rows = torch.from_numpy(rows).to(device)
        self._buffer = torch.zeros(binding.shape, device='cpu' if on_host else device)
        self._mask = torch.zeros(rows.size, dtype=torch.uint8, device=self._buffer.device)
        self._direct = self._in_order and self._buffer.device == self._rows.device and origins is None
        self.values: Any = self._buffer.view(self.shape) if self._direct else torch.zeros(self.shape, device=device)

    @override
    def read(self) -> Any:
        self._binding.read(self._buffer)
        if not self._direct:
            own = self._buffer.to(self.values.device)
            self.values[...] = own.view(self.shape) if self._in_order else own[self._rows]
        if self._origins is not None:
            self.values[..., :3] -= self._origins
        return self.values

    @override
    def write(self, slots: Any = None) -> None:
        if not self._direct:
            values = self.values
            if self._origins is not None:
                values = values.clone()
                values[..., :3] += self._origins
            own = values.view(self._buffer.shape)
            if not self._in_order:
                own = torch.empty_like(own)
                own[self._rows] = values
            self._buffer.copy_(own)
        if slots is None:
            self._binding.write(self._buffer)
            return
        mask = slots[:, None].expand(self._rows.shape)
        if self._in_order:
            self._mask.view(self._rows.shape).copy_(mask)
        else:
            self._mask[self._rows] = mask.to(torch.uint8)
        self._binding.write(self._buffer, mask=self._mask)


class DeviceContacts(ContactForces):
    """Contact forces on bodies of all slots, as tensors `(slots, count, 3)`, zero but at some places."""

    def __init__(self, binding: Any, rows: NDArray[np.intp], places: Sequence[int], count: int, device: str):
        self._binding = binding
        self._rows = torch.from_numpy(rows).to(device)
        self._places = torch.tensor(places, device=device)
        self._in_order = len(places) == count and bool((rows.ravel() == np.arange(rows.size)).all())
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
        if self._in_order:
            return net.view(self._forces.shape)
        self._forces[:, self._places] = net[self._rows]
        return self._forces

    def close(self) -> None:
        """Let go of PhysX."""
        self._binding.destroy()
