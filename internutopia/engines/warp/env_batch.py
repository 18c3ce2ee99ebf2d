"""Env batch of one `WarpBatch`: slots are its worlds, per-slot model fields are fields with a batch axis."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
import warp as wp
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.env_batch import Arrays, EnvBatch, Geoms, Index, Slots
from internutopia.engines.warp.arrays import BAD_QUANTITIES, HostMirror
from internutopia.engines.warp.batch import OF_MASSES, STATE_FIELDS, WarpBatch
from internutopia.engines.warp.model import BATCHED_FIELDS, Capacities, warp_scene
from internutopia.model.compiled import CompiledScene


class WarpEnvBatch(EnvBatch):
    """The envs of one model structure on a Warp device."""

    fields = BATCHED_FIELDS

    def __init__(self, scene: CompiledScene, capacity: int, device: wp.Device):
        super().__init__(scene, capacity)
        self._own = warp_scene(scene)
        self.batch = self._new_batch(capacity, device)
        self._scratch = mujoco.MjData(self._own.model)
        self._defaults = {name: np.array(getattr(self._scratch, name)) for name in STATE_FIELDS}
        self._derives = False  # whether derived fields are read, so that a step computes them, too
        self._stale = True  # whether derived fields do not describe the state
        self._mixed = False  # whether geoms that never move stand elsewhere in some slots

    @override
    def efforts(self) -> NDArray[np.float32]:
        return self.batch.efforts.read()

    @override
    def sensors(self) -> NDArray[np.float32]:
        return self.batch.sensors.read()

    @property
    def fresh(self) -> bool:
        """True if there are slots that have made no substep yet and whose probes were not measured."""
        return bool(self._unmeasured.any())

    @override
    def measured(self) -> NDArray[np.float32]:
        self.measure_fresh()
        self._unmeasured[:] = False
        return self.sensors()

    def measure_fresh(self) -> None:
        """Measure the probes of the slots that have made no substep yet."""
        if self._unmeasured.any() and len(self.probed):
            self.batch.forward()
            self._stale = False
            where = np.ix_(self._unmeasured, self.probed)
            self.batch.sensors.write()[where] = self.batch.field('sensordata').read()[where]

    @override
    def read(self, name: str) -> NDArray[Any]:
        """Return a state field, or a pose or velocity of bodies."""
        self.derive(name)
        return self.batch.field(name).read()

    def derive(self, name: str) -> None:
        """Recompute a field from the current state."""
        if name not in STATE_FIELDS:
            self._derives = True
            if self._stale:
                self.batch.kinematics()
                self._stale = False

    @override
    def write(self, name: str) -> NDArray[Any]:
        return self.batch.field(name).write()

    @override
    def mark_dirty(self, slots: Index) -> None:
        self._stale = True

    @override
    def expand(self, name: str) -> NDArray[Any]:
        return self.expanded(name).write()

    def expanded(self, name: str) -> HostMirror:
        """Return a model field with its own values in each slot, which are about to be written to."""
        self._expanded.add(name)
        self.model_version += 1
        return self.batch.expand(name)

    @override
    def values(self, name: str) -> NDArray[Any]:
        if name in self._expanded:
            return self.batch.expand(name).read()
        shared = self._own.batched_fields[name]
        return np.broadcast_to(shared, (self.capacity, *shared.shape))

    @override
    def set_constants(self, slots: Index, mask: Any = None) -> None:
        selected = np.zeros(self.capacity, bool)
        selected[slots] = True if mask is None else mask
        self.batch.select(selected)
        self.recompute_constants()

    def recompute_constants(self) -> None:
        """Recompute the constants of the slots in `batch.selected`."""
        self.batch.set_constants()
        self._expanded.update(OF_MASSES)
        self.model_version += 1
        self._stale = True

    @override
    def ray(
        self,
        slots: NDArray[np.intp],
        origins: NDArray[np.float64],
        directions: NDArray[np.float64],
        seen: Geoms,
    ) -> NDArray[np.float64]:
        self.read('geom_xpos')  # describes the state from here on
        everywhere = np.zeros((2, self.capacity, *directions.shape[1:]), np.float32)
        everywhere[0, slots], everywhere[1, slots] = origins, directions
        return self.batch.ray(everywhere[0], everywhere[1], seen)[slots].astype(np.float64)

    @override
    def step(self, slots: Slots | None, substeps: int) -> dict[int, str]:
        selected = np.zeros(self.capacity, bool)
        selected[slice(None) if slots is None else slots] = True
        report = self.batch.step(selected, substeps, self._derives)
        self._stale = not self._derives
        self._unmeasured[selected] = False
        failed: dict[int, str] = {}
        for slot in np.flatnonzero(selected & (report[:, 0] > 0)).tolist():
            kind, index = report[slot, :2].tolist()
            failed[int(self.envs[slot])] = f'the simulation diverged: bad {BAD_QUANTITIES[kind]} {index}'
        return failed

    def launch_step(self, substeps: int) -> None:
        """Advance the slots in `batch.selected`, without waiting for it."""
        self.batch.launch_step(substeps, self._derives)
        self._stale = not self._derives
        self._unmeasured[:] = False

    def launch_reset(self) -> None:
        """Start the slots in `batch.selected` afresh, without waiting for it."""
        self.batch.launch_reset()
        self._stale = True

    @override
    def full_state(self, slot: int) -> NDArray[np.float64]:
        self._fill(self._scratch, slot)
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(self._own.model, kind))
        mujoco.mj_getState(self._own.model, self._scratch, state, kind)
        return state

    @override
    def model(self, slot: int, scene: CompiledScene) -> mujoco.MjModel:
        model = copy.copy(scene.model)
        for name in self._expanded:
            row = self.values(name)[slot]
            if not np.array_equal(row, self._field_of(scene, name), equal_nan=True):  # else it is more precise there
                field = getattr(model, name)
                field[...] = row.reshape(field.shape)
        return model

    @override
    def data(self, slot: int) -> mujoco.MjData:
        data = mujoco.MjData(self._own.model)
        self._fill(data, slot)
        return data

    def _new_batch(self, capacity: int, device: wp.Device, capacities: Capacities | None = None) -> WarpBatch:
        return WarpBatch(self._own.model, capacity, device, capacities)

    def _fill(self, data: mujoco.MjData, slot: int) -> None:
        for name in STATE_FIELDS:
            row = self.read(name)[slot]
            if name == 'time':
                data.time = float(row)
            else:
                getattr(data, name)[...] = row

    @override
    def _resize(self, capacity: int) -> None:
        old = self.batch
        self.batch = self._new_batch(capacity, old.device, old.capacities)
        self.batch.take(old)
        self._stale = True

    @override
    def _reset(self, slot: int, state: Mapping[str, NDArray[Any]]) -> None:
        for name in STATE_FIELDS:
            self.write(name)[slot] = state.get(name, self._defaults[name])
        self.batch.efforts.write()[slot] = self.batch.sensors.write()[slot] = 0.0
        self._stale = True

    @override
    def _get_engine_states(self, slots: slice | Slots) -> Arrays:
        fields = [self.read(name)[slots] for name in STATE_FIELDS]
        state = np.concatenate([rows.reshape(len(rows), -1) for rows in fields], axis=1, dtype=np.float32)
        return {'state': state, 'efforts': self.efforts()[slots], 'sensors': self.sensors()[slots]}

    @override
    def _set_engine_state(self, slot: int, state: Mapping[str, NDArray[Any]]) -> None:
        ends = np.cumsum([self._defaults[name].size for name in STATE_FIELDS])
        for name, values in zip(STATE_FIELDS, np.split(state['state'], ends[:-1]), strict=True):
            self.write(name)[slot] = values.reshape(self._defaults[name].shape)
        self.batch.efforts.write()[slot] = state['efforts']
        self.batch.sensors.write()[slot] = state['sensors']
        self._stale = True

    @override
    def _field_of(self, scene: CompiledScene, name: str) -> NDArray[Any]:
        return warp_scene(scene).batched_fields[name]

    @override
    def _write_model(self, slot: int, scene: CompiledScene) -> None:
        super()._write_model(slot, scene)
        self._mixed |= scene is not self.scene
        if self._mixed:
            geoms, positions, rotations = warp_scene(scene).static_geoms
            self.batch.field('geom_xpos').write()[slot, geoms] = positions
            self.batch.field('geom_xmat').write()[slot, geoms] = rotations
