"""Env batch of one `mujoco.batch.Batch`: slots are its simulations, per-slot model fields are `Batch.expand`'s.

MuJoCo places every geom of a model again in each step, which takes most of the time in a home of thousands of geoms. It
leaves out those that are fixed to the world where things may fall asleep (`mjENBL_SLEEP`). So a batch whose model has
many of them may do that, and nothing in it may: each tree has the policy never to sleep. Results are the same to the
bit. Such a batch is persistent, which is an `MjData` for each simulation.

From 60 degrees of freedom on, MuJoCo's constraint Jacobian is sparse unless the model sets another. MuJoCo 4.0.0 then
factors the Hessian of its Newton solver wrongly where robots touch one another: steps take many times the iterations,
and robots fly away. 4.0.1 puts it right. With a dense Jacobian, 4.0.0 agrees with it to rounding, and takes about as
long.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Any

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS, Batch, SimulationError
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.env_batch import Arrays, EnvBatch, Geoms, Index, Slots
from internutopia.model.compiled import CompiledScene

MANY_GEOMS = 500
"""A model with more geoms that are fixed to the world has them placed once."""
POSE_FIELDS = frozenset({'body_pos', 'body_quat', 'geom_pos', 'geom_quat', 'site_pos', 'site_quat'})
"""Fields of `MjModel` that may move them; where one has values per simulation, they are placed in each step."""

_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
_BROKEN = '4.0.0'  # whose sparse Newton solver is wrong


def make_batch(model: mujoco.MjModel, nsim: int, nthread: int, expanded: AbstractSet[str]) -> Batch:
    """Return a batch of simulations; `expanded` are the fields of the model that will have values per simulation."""
    model = _solved_right(model)
    geoms = np.count_nonzero(model.body_weldid[model.geom_bodyid] == 0)
    rk4 = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4  # which cannot do that
    if geoms <= MANY_GEOMS or rk4 or POSE_FIELDS & expanded:
        return Batch(model, nsim, nthread)
    sleepless = copy.copy(model)
    sleepless.opt.enableflags |= _SLEEP
    sleepless.tree_sleep_policy[:] = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    batch = Batch(sleepless, nsim, nthread, persistent=True)
    batch.model = model  # it has made its own copy: there need not be a third one
    return batch


def _solved_right(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return the model, or a copy with a dense Jacobian if this MuJoCo would solve it wrongly."""
    newton = model.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON
    if mujoco.__version__ != _BROKEN or not newton or not mujoco.mj_isSparse(model):
        return model
    model = copy.copy(model)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return model


STATE_FIELDS = frozenset({'time', 'qpos', 'qvel', 'act', 'ctrl', 'xfrc_applied', 'mocap_pos', 'mocap_quat'})
# Warnings after which MuJoCo has reset the simulation to its defaults, or its controls to zero: the episode is lost
_DIVERGED = {
    int(mujoco.mjtWarning.mjWARN_BADQPOS): 'position at dof',
    int(mujoco.mjtWarning.mjWARN_BADQVEL): 'velocity at dof',
    int(mujoco.mjtWarning.mjWARN_BADQACC): 'acceleration at dof',
    int(mujoco.mjtWarning.mjWARN_BADCTRL): 'control of actuator',
}
_FATAL = slice(min(_DIVERGED), max(_DIVERGED) + 1)  # they follow one another
_FLAGS, _GROUPS = 'opt.disableflags', 'geom_group'
_CHANGED_FOR_CALLS = (_FLAGS, _GROUPS)  # which have the values of the model otherwise
# Poses and velocities do not depend on contacts, other constraints and sensors, which would take most of the time
_MOTION_ALONE = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_SENSOR)
_FIRST_GROUP = np.array([1] + [0] * (mujoco.mjNGROUP - 1), np.uint8)
_VELOCITY_STAGE = int(mujoco.mjtStage.mjSTAGE_VEL)
_NO_STAGE = int(mujoco.mjtStage.mjSTAGE_NONE)


class MujocoEnvBatch(EnvBatch):
    """The envs of one model structure. `capacity` slots, `nthread` threads of its own (the caller's included)."""

    fields = MODEL_FIELDS

    def __init__(self, scene: CompiledScene, capacity: int, nthread: int):
        super().__init__(scene, capacity)
        self._bind(make_batch(scene.model, capacity, nthread, self._expanded))
        self._efforts = np.zeros((capacity, scene.model.nv))
        self._sensors = np.zeros((capacity, scene.model.nsensordata))
        self._defaults = self.batch.state[0].copy()  # of the model: what a reset of the batch writes
        self._was_read = False  # since the last step

    def _bind(self, batch: Batch) -> None:
        """Take a batch, and bind its arrays."""
        self.batch = batch
        self.nthread = batch.nthread  # threads that a call of it runs on
        self._step_efforts = batch.bind('qfrc_actuator')  # of a step; meaningless after any other call
        self._step_sensors = batch.bind('sensordata')  # likewise
        self._fields: dict[str, NDArray[Any]] = {name: batch.bind(name) for name in STATE_FIELDS}
        self._derived: set[str] = set()  # fields that follow from the state, bound when they are read first
        self._stale = np.zeros(batch.nsim, bool)  # slots where they do not describe it
        self._has_constants = False  # per slot: whether `_expanded` has the fields that `set_constants` computes

    @override
    def efforts(self) -> NDArray[np.float64]:
        return self._efforts

    @override
    def sensors(self) -> NDArray[np.float64]:
        return self._sensors

    def rebuild(self, capacity: int, nthread: int) -> None:
        """Move to a batch of another size or thread count; every env keeps its slot and its state bit for bit."""
        old, n = self.batch, self.capacity
        self._bind(make_batch(self.scene.model, capacity, nthread, self._expanded))
        for name in self._expanded:
            if (before := old.expanded(name)) is not None:
                self.batch.expand(name)[:n] = before
        self._efforts = np.concatenate([self._efforts, np.zeros((capacity - n, self.scene.model.nv))])
        self._sensors = np.concatenate([self._sensors, np.zeros((capacity - n, self.scene.model.nsensordata))])
        self.batch.state[:n] = old.state
        self.batch.warning[:n] = old.warning

    @override
    def remove(self, slots: NDArray[np.intp]) -> None:
        super().remove(slots)
        self._stale[slots] = False

    @override
    def read(self, name: str) -> NDArray[Any]:
        """Return a live array; it is computed without constraints, so forces of contacts do not mean anything."""
        array = self._fields.get(name)
        if array is None:
            array = self._fields[name] = self.batch.bind(name)
            self._derived.add(name)
            self._stale[:] = self.envs >= 0
        if name in self._derived:
            self._was_read = True
            self._derive()
        return array

    @override
    def write(self, name: str) -> NDArray[Any]:
        return self._fields[name]

    @override
    def measured(self) -> NDArray[np.float64]:
        slots = np.flatnonzero(self._unmeasured).astype(np.int32)
        if len(slots):
            self._unmeasured[:] = False
            if len(self.probed):
                with contextlib.suppress(SimulationError):  # the next step meets and reports it
                    self.batch.forward(slots)
                self._sensors[np.ix_(slots, self.probed)] = self._step_sensors[np.ix_(slots, self.probed)]
        return self._sensors

    @override
    def mark_dirty(self, slots: Index) -> None:
        self._stale[slots] = True

    @override
    def expand(self, name: str) -> NDArray[Any]:
        """Return a live array."""
        self._expanded.add(name)
        self.model_version += 1
        if name in POSE_FIELDS and self.batch.persistent:
            self.rebuild(self.capacity, self.nthread)  # what is fixed differs from now on
        return self.batch.expand(name)

    @override
    def values(self, name: str) -> NDArray[Any]:
        """Return the values of a model field; read-only unless expanded."""
        values = self.batch.expanded(name)
        if values is None:
            template = self._field_of(self.scene, name)
            return np.broadcast_to(template, (self.capacity, *template.shape))
        return values

    @override
    def set_constants(self, slots: Index, mask: Any = None) -> None:
        self.batch.set_const(np.sort(self.ids(slots)).astype(np.int32))
        if not self._has_constants:
            self._has_constants = True
            self._expanded.update(
                name
                for name in MODEL_FIELDS
                if name not in _CHANGED_FOR_CALLS and self.batch.expanded(name) is not None
            )
        self.model_version += 1
        self.mark_dirty(slots)

    @override
    def ray(
        self,
        slots: NDArray[np.intp],
        origins: NDArray[np.float64],
        directions: NDArray[np.float64],
        seen: Geoms,
    ) -> NDArray[np.float64]:
        ids = None if len(slots) == self.capacity else slots.astype(np.int32)
        groups = self.batch.expand(_GROUPS)
        groups[:] = np.where(seen, 0, 1)
        try:
            distances, geoms = self.batch.ray(origins, directions, _FIRST_GROUP, ids=ids)
        finally:
            groups[:] = self.scene.model.geom_group
        distances[geoms < 0] = np.inf
        return distances

    @override
    def step(self, slots: Slots | None, substeps: int) -> dict[int, str]:
        failed: dict[int, str] = {}
        batch = self.batch
        goes_on = batch.persistent and bool(self._derived)  # the next step begins with what is derived now
        try:
            batch.step(slots, substeps, _VELOCITY_STAGE if goes_on else _NO_STAGE)
        except SimulationError as error:
            for slot in error.ids:
                failed[int(self.envs[slot])] = f'the physics engine failed: {batch.error(int(slot))}'
        stepped = slice(None) if slots is None else slots
        self._efforts[stepped] = self._step_efforts[stepped]
        self._sensors[stepped] = self._step_sensors[stepped]
        self._unmeasured[stepped] = False
        self._stale[stepped] = not goes_on
        if self._was_read:  # and will be again: here, batches run on several threads
            self._was_read = False
            self._derive()
        counts = batch.warning[:, _FATAL, 1]
        if np.count_nonzero(counts):
            for kind, quantity in _DIVERGED.items():
                for slot in np.flatnonzero(batch.warning[:, kind, 1]):
                    env_id, index = int(self.envs[slot]), int(batch.warning[slot, kind, 0])
                    if env_id >= 0:
                        failed.setdefault(env_id, f'the simulation diverged: bad {quantity} {index}')
            counts[:] = 0
        return failed

    @override
    def full_state(self, slot: int) -> NDArray[np.float64]:
        """Return a live array."""
        return self.batch.state[slot]

    @override
    def model(self, slot: int, scene: CompiledScene) -> mujoco.MjModel:
        model = self.batch.get_model(slot, copy.copy(scene.model))
        if self.batch.persistent:
            model.opt.enableflags = scene.model.opt.enableflags  # its user may move what is fixed
        return model

    @override
    def data(self, slot: int) -> mujoco.MjData:
        return self.batch.get_data(slot)

    def _derive(self) -> None:
        """Recompute derived fields that do not describe the state."""
        count = np.count_nonzero(self._stale)
        if not count:
            return
        slots = None if count == self.capacity else np.flatnonzero(self._stale).astype(np.int32)
        self._stale[:] = False
        if self.batch.persistent:  # its next step would go on without constraints
            self.batch.forward(slots, _VELOCITY_STAGE)
            return
        flags, own = self.batch.expand(_FLAGS), self.scene.model.opt.disableflags
        flags[:] = own | _MOTION_ALONE
        try:
            self.batch.forward(slots, _VELOCITY_STAGE)
        finally:
            flags[:] = own

    @override
    def _resize(self, capacity: int) -> None:
        self.rebuild(capacity, self.nthread)

    @override
    def _reset(self, slot: int, state: Mapping[str, NDArray[Any]]) -> None:
        self.batch.state[slot] = self._defaults
        self.batch.warning[slot] = 0
        for name, value in state.items():
            self._fields[name][slot] = value
        self._efforts[slot] = self._sensors[slot] = 0.0
        self._stale[slot] = True

    @override
    def _get_engine_states(self, slots: slice | Slots) -> Arrays:
        return {
            'state': self.batch.state[slots],
            'efforts': self._efforts[slots],
            'sensors': self._sensors[slots],
        }

    @override
    def _set_engine_state(self, slot: int, state: Mapping[str, NDArray[Any]]) -> None:
        self.batch.state[slot] = state['state']
        self.batch.warning[slot] = 0
        self._efforts[slot], self._sensors[slot] = state['efforts'], state['sensors']
        self._stale[slot] = True

    @override
    def _field_of(self, scene: CompiledScene, name: str) -> NDArray[Any]:
        value = np.asarray(attrgetter(name)(scene.model))  # of its options if called `opt.<name>`
        # this one is per simulation for the bodies' volumes only, which come first
        return value[: scene.model.body_bvhnum.sum()] if name == 'bvh_aabb' else value
