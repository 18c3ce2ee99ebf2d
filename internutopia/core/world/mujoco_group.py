"""Envs that share one `mujoco.batch.Batch`: their models have the same structure and differ in float fields at most.

A group hands out slots (simulations of its batch) to envs and grows when it runs out. What differs between the models
of its envs, and what is changed per env at run time (gains, masses), lives in the batch's per-simulation fields
(`Batch.expand`); a field costs nothing until the first env differs in it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS, Batch, SimulationError
from numpy.typing import NDArray

from internutopia.core.scene.compiled import CompiledScene

Slots = NDArray[np.int32]
Index = slice | NDArray[np.intp]

_IDS = itertools.count()
STATE_FIELDS = frozenset({'time', 'qpos', 'qvel', 'act', 'ctrl', 'xfrc_applied', 'mocap_pos', 'mocap_quat'})
# Warnings after which MuJoCo has reset the simulation to its defaults, or its controls to zero: the episode is lost
_DIVERGED = {
    int(mujoco.mjtWarning.mjWARN_BADQPOS): 'position at dof',
    int(mujoco.mjtWarning.mjWARN_BADQVEL): 'velocity at dof',
    int(mujoco.mjtWarning.mjWARN_BADQACC): 'acceleration at dof',
    int(mujoco.mjtWarning.mjWARN_BADCTRL): 'control of actuator',
}
_FATAL = slice(min(_DIVERGED), max(_DIVERGED) + 1)  # they follow one another
_FIELD = 'model/'  # prefix of model fields among saved arrays
_VELOCITY_STAGE = int(mujoco.mjtStage.mjSTAGE_VEL)
_NO_STAGE = int(mujoco.mjtStage.mjSTAGE_NONE)


class Group:
    """The envs of one model structure. `capacity` slots, `nthread` threads of its own (the caller's included)."""

    def __init__(self, scene: CompiledScene, capacity: int, nthread: int):
        self.id = next(_IDS)
        self.scene = scene
        self.envs: NDArray[np.intp] = np.full(capacity, -1, np.intp)  # env in each slot, -1: free
        self.used = 0  # slots
        self.batch = Batch(scene.model, capacity, nthread)
        self._step_efforts = self.batch.bind('qfrc_actuator')  # of a step; meaningless after any other call
        self.efforts = np.zeros((capacity, scene.model.nv))  # of actuators on dofs in the last substep, after clamping
        self._step_sensors = self.batch.bind('sensordata')  # likewise
        self.sensors = np.zeros((capacity, scene.model.nsensordata))  # in the last substep
        probes = [address for robot in scene.robots.values() for address in robot.probes.values()]
        self._probed = np.unique(np.concatenate(probes)) if probes else np.zeros(0, np.intp)  # columns of `sensors`
        self._unmeasured: set[int] = set()  # slots that have made no substep yet
        self._occupied: tuple[Index, Index] | None = None
        self._defaults = self.batch.state[0].copy()  # of the model: what a reset of the batch writes
        self._fields: dict[str, NDArray[Any]] = {}
        self._derived: set[str] = set()  # fields that a call recomputes
        self._stale: set[int] = set()  # slots whose derived fields do not describe their state
        self._expanded: set[str] = set()  # model fields with per-simulation values
        self._differing: WeakKeyDictionary[CompiledScene, list[str]] = WeakKeyDictionary({scene: []})

    @property
    def capacity(self) -> int:
        """Number of slots."""
        return len(self.envs)

    @property
    def occupied(self) -> tuple[Index, Index] | None:
        """The slots in use and the envs in them, None if there are none."""
        if self._occupied is None and (slots := np.flatnonzero(self.envs >= 0)).size:
            self._occupied = as_index(slots), as_index(self.envs[slots])
        return self._occupied

    @property
    def nthread(self) -> int:
        """Threads a call of this group runs on."""
        return self.batch.nthread

    def reserve(self, count: int, limit: int) -> None:
        """Make room for `count` more envs, of `limit` that can ever be needed."""
        if self.used + count > self.capacity:
            self.rebuild(min(limit, max(self.used + count, 2 * self.capacity)), self.nthread)

    def rebuild(self, capacity: int, nthread: int) -> None:
        """Move to a batch of another size or thread count; every env keeps its slot and its state to the bit."""
        old, self.batch = self.batch, Batch(self.scene.model, capacity, nthread)
        n = old.nsim
        for name in self._expanded:
            values = self.batch.expand(name)
            values[:n] = old.expanded(name)
        self._step_efforts = self.batch.bind('qfrc_actuator')
        self._step_sensors = self.batch.bind('sensordata')
        self.efforts = np.concatenate([self.efforts, np.zeros((capacity - n, self.scene.model.nv))])
        self.sensors = np.concatenate([self.sensors, np.zeros((capacity - n, self.scene.model.nsensordata))])
        self.batch.state[:n] = old.state
        self.batch.warning[:n] = old.warning
        envs = np.full(capacity, -1, np.intp)
        envs[:n] = self.envs
        self.envs = envs
        self._fields.clear()
        derived, self._derived = self._derived, set()
        for name in derived:
            self.read(name)

    def add(self, env_id: int, scene: CompiledScene, state: Mapping[str, NDArray[Any]]) -> int:
        """Start an env in a free slot (`reserve` first) with the given state fields; returns the slot."""
        slot = int(np.flatnonzero(self.envs < 0)[0])
        self.envs[slot] = env_id
        self.used += 1
        self._occupied = None
        self.batch.state[slot] = self._defaults
        self.batch.warning[slot] = 0
        for name, value in state.items():
            self.read(name)[slot] = value
        self._write_model(slot, scene)
        self.efforts[slot] = self.sensors[slot] = 0.0
        self._stale.add(slot)
        self._unmeasured.add(slot)
        return slot

    def remove(self, slots: NDArray[np.intp]) -> None:
        """Free slots."""
        self.envs[slots] = -1
        self.used -= len(slots)
        self._occupied = None
        self._stale.difference_update(slots.tolist())
        self._unmeasured.difference_update(slots.tolist())

    def read(self, name: str) -> NDArray[Any]:
        """The live `(capacity, ...)` array of an `MjData` field, describing the current state of every env."""
        array = self._fields.get(name)
        if array is None:
            array = self._fields[name] = self.batch.bind(name)
            if name not in STATE_FIELDS:
                self._derived.add(name)
                self._stale.update(np.flatnonzero(self.envs >= 0).tolist())
        if self._stale and name in self._derived:
            self.batch.forward(np.array(sorted(self._stale), np.int32), stage=_VELOCITY_STAGE)
            self._stale.clear()
        return array

    def measured(self) -> NDArray[np.float64]:
        """`sensors`, where probes hold what they measure at the first instant until a substep was made."""
        if self._unmeasured:
            slots = np.array(sorted(self._unmeasured), np.int32)
            self._unmeasured.clear()
            if len(self._probed):
                with contextlib.suppress(SimulationError):  # the next step meets and reports it
                    self.batch.forward(slots)
                self.sensors[np.ix_(slots, self._probed)] = self._step_sensors[np.ix_(slots, self._probed)]
        return self.sensors

    def touched(self, slots: Index) -> None:
        """Positions or velocities of these slots were written: derived fields must follow when read next."""
        if self._derived:
            self._stale.update(self.ids(slots).tolist())

    def expand(self, name: str) -> NDArray[Any]:
        """The writable `(capacity, ...)` per-simulation values of an `MjModel` field."""
        self._expanded.add(name)
        return self.batch.expand(name)

    def values(self, name: str) -> NDArray[Any]:
        """The `(capacity, ...)` values of an `MjModel` field, read-only unless expanded."""
        values = self.batch.expanded(name)
        if values is None:
            template = model_field(self.scene.model, name)
            return np.broadcast_to(template, (self.capacity, *template.shape))
        return values

    def ids(self, slots: Index) -> NDArray[np.intp]:
        """Slots as an array of numbers."""
        return np.arange(self.capacity)[slots]

    def set_constants(self, slots: Index) -> None:
        """Recompute what follows from masses and inertias that were changed per simulation."""
        self.batch.set_const(np.sort(self.ids(slots)).astype(np.int32))
        self._expanded.update(name for name in MODEL_FIELDS if self.batch.expanded(name) is not None)
        self.touched(slots)

    def save(self, slot: int, scene: CompiledScene) -> dict[str, NDArray[Any]]:
        """A slot's state, what was measured there last, and where its model is not that of its scene (any more)."""
        changed = {
            f'{_FIELD}{name}': row.copy()
            for name in sorted(self._expanded)
            if not np.array_equal(row := self.values(name)[slot], _per_simulation(scene, name, row), equal_nan=True)
        }
        measured = {name: getattr(self, name)[slot].copy() for name in ('efforts', 'sensors')}
        fresh = np.array(slot in self._unmeasured)
        return {'state': self.batch.state[slot].copy(), **measured, 'fresh': fresh, **changed}

    def takes(self, saved: Mapping[str, NDArray[Any]]) -> bool:
        """Whether arrays that were saved have the shapes of this group's."""
        own = {'state': self.batch.state[0], 'efforts': self.efforts[0], 'sensors': self.sensors[0]}
        fields = [name.removeprefix(_FIELD) for name in saved if name.startswith(_FIELD)]
        if not own.keys() <= saved.keys() or not MODEL_FIELDS.issuperset(fields):
            return False
        own |= {f'{_FIELD}{name}': self.values(name)[0] for name in fields}
        return all(saved[name].shape == row.shape for name, row in own.items())

    def restore(self, slot: int, scene: CompiledScene, saved: Mapping[str, NDArray[Any]]) -> None:
        """Give a slot a state that was saved."""
        self.batch.state[slot] = saved['state']
        self.batch.warning[slot] = 0
        self.efforts[slot], self.sensors[slot] = saved['efforts'], saved['sensors']
        self._write_model(slot, scene)
        for name, row in saved.items():
            if name.startswith(_FIELD):
                self.expand(name.removeprefix(_FIELD))[slot] = row
        self._stale.add(slot)
        self._unmeasured.discard(slot)
        if saved['fresh']:
            self._unmeasured.add(slot)

    def step(self, slots: Slots | None, substeps: int) -> dict[int, str]:
        """Advance slots (None: all); returns {env id: reason} for those that failed."""
        failed: dict[int, str] = {}
        batch = self.batch
        stage = _VELOCITY_STAGE if self._derived else _NO_STAGE
        try:
            batch.step(slots, substeps, stage)
        except SimulationError as error:
            for slot in error.ids:
                failed[int(self.envs[slot])] = f'the physics engine failed: {batch.error(int(slot))}'
        rows = slice(None) if slots is None else slots
        self.efforts[rows] = self._step_efforts[rows]
        self.sensors[rows] = self._step_sensors[rows]
        if slots is None:
            self._unmeasured.clear()
        elif self._unmeasured:
            self._unmeasured.difference_update(slots.tolist())
        if stage == _NO_STAGE:
            self._stale.clear()  # nothing derived is bound: the next binding forwards every env
        elif self._stale:
            self._stale.difference_update(range(self.capacity) if slots is None else slots.tolist())
        counts = batch.warning[:, _FATAL, 1]
        if counts.any():
            for kind, quantity in _DIVERGED.items():
                for slot in np.flatnonzero(batch.warning[:, kind, 1]):
                    env_id, index = int(self.envs[slot]), int(batch.warning[slot, kind, 0])
                    if env_id >= 0:
                        failed.setdefault(env_id, f'the simulation diverged: bad {quantity} {index}')
            counts[:] = 0
        return failed

    def _write_model(self, slot: int, scene: CompiledScene) -> None:
        """Give a slot the float fields of its scene's model, undoing what was changed there before."""
        if scene not in self._differing:
            self._differing[scene] = [
                name
                for name in MODEL_FIELDS
                if not np.array_equal(
                    model_field(self.scene.model, name), model_field(scene.model, name), equal_nan=True
                )
            ]
        for name in (*self._differing[scene], *self._expanded):
            target = self.expand(name)
            target[slot] = _per_simulation(scene, name, target[slot])


def _per_simulation(scene: CompiledScene, name: str, row: NDArray[Any]) -> NDArray[Any]:
    """A field of a scene's model, as long as the `row` that a simulation has of it."""
    value = model_field(scene.model, name)
    # bvh_aabb is per simulation for the bodies' volumes only, which come first
    return value[: len(row)] if value.ndim else value


def as_index(ids: NDArray[np.intp]) -> Index:
    """The same index as a slice where it is contiguous: numpy copies blocks much faster than rows."""
    if len(ids):
        first, end = int(ids[0]), int(ids[-1]) + 1
        if end - first == len(ids) and (ids[1:] > ids[:-1]).all():
            return slice(first, end)
    return ids


def model_field(model: mujoco.MjModel, name: str) -> NDArray[Any]:
    """A field of `MjModel`, or of its options when called `opt.<name>`, as an array."""
    return np.asarray(getattr(model.opt, name[4:]) if name.startswith('opt.') else getattr(model, name))
