"""Env batch on PhysX: states, models and all that follows from them are MuJoCo's, steps are PhysX's.

A `MujocoEnvBatch` holds positions and velocities, computes poses, casts rays and keeps what was changed per slot. A
step writes what was changed to PhysX, and reads positions and velocities back. Slots live in instances of PhysX: a
batch that grows gets another one, so no slot that is there is touched, and they are stepped on threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.env_batch import Arrays, Index, Slots
from internutopia.engines.mujoco.env_batch import MujocoEnvBatch
from internutopia.engines.physx.drives import Drives, Floats, Gains
from internutopia.engines.physx.fields import CHANGEABLE, VISUAL
from internutopia.engines.physx.instance import PhysxInstance
from internutopia.engines.physx.physx_scene import physx_scene
from internutopia.engines.physx.runtime import PhysxStage
from internutopia.engines.physx.sensors import Sensors
from internutopia.model.compiled import CompiledScene

_STATE = ('qpos', 'qvel', 'mocap_pos', 'mocap_quat')
_MASSES = ('body_mass', 'body_inertia', 'body_ipos', 'body_iquat')
_FEWEST_SLOTS = 4  # of an instance: fewer are not worth a thread
_FARTHEST = 1e10  # [m, rad, and per s] what is beyond has diverged, for MuJoCo, too


class PhysxEnvBatch(MujocoEnvBatch):
    """The envs of one model structure on PhysX."""

    fields = CHANGEABLE | VISUAL

    def __init__(self, scene: CompiledScene, capacity: int, nthread: int):
        super().__init__(scene, capacity, nthread)
        self._physx = physx_scene(scene)
        self._drives: Drives = self._physx.drives
        self._sensing = Sensors(self)
        self._instances: list[tuple[slice, PhysxInstance]] = []
        self._moved = np.ones(capacity, bool)  # slots whose state PhysX does not have
        self._pushed_version = -1  # of the models that PhysX has
        self._gains: Gains | None = None
        self._controls: Floats | None = None  # that PhysX has
        self._unread = np.zeros(capacity, bool)  # slots whose sensors were not read since the last step
        self._pool: ThreadPoolExecutor | None = None
        self._close = finalize(self, _close_all, self._instances)
        self._close.atexit = False  # then PhysX closes them itself
        self._grow(0, capacity)

    @override
    def sensors(self) -> NDArray[np.float64]:
        if self._unread.any():
            self._measure()
        return self._sensors

    @override
    def measured(self) -> NDArray[np.float64]:
        super().measured()
        return self.sensors()

    @override
    def expand(self, name: str) -> NDArray[Any]:
        """Return a live array; NotImplementedError for a field that PhysX cannot change at run time."""
        if name not in self.fields and not name.startswith('opt.'):
            raise NotImplementedError(f"backend 'physx' cannot change {name!r} of an env that runs")
        return super().expand(name)

    @override
    def mark_dirty(self, slots: Index) -> None:
        super().mark_dirty(slots)
        self._moved[slots] = True

    @override
    def step(self, slots: Slots | None, substeps: int) -> dict[int, str]:
        selected = np.zeros(self.capacity, bool)
        selected[slice(None) if slots is None else slots] = True
        if (self._unread & ~selected).any():
            self._measure()
        self._push_models()
        efforts = self._push_targets()
        self._sensing.begin()
        sound = self._finite()  # what is put too far away, PhysX may bring back
        parts = [(rows, instance) for rows, instance in self._instances if selected[rows].any()]
        self._each([functools.partial(self._advance, rows, instance, selected, substeps) for rows, instance in parts])
        bad = selected & ~(sound & self._finite())
        self.read('time')[selected] += substeps * self.scene.model.opt.timestep
        assert self._gains is not None
        self._efforts[selected] = self._drives.applied(self._gains, efforts, self.read('qpos'), self.read('qvel'))[
            selected
        ]
        self._stale[selected] = True
        self._unmeasured[selected] = False
        self._unread[selected] = True
        self._sensing.follow(self._sensors, self._efforts, selected)
        if self._was_read:
            self._was_read = False
            self._derive()
        reason = 'the simulation diverged: its state is not finite any more'
        return {int(self.envs[slot]): reason for slot in np.flatnonzero(bad).tolist() if self.envs[slot] >= 0}

    def close(self) -> None:
        """Free the instances of PhysX."""
        self._close()
        if self._pool is not None:
            self._pool.shutdown()

    def _advance(self, rows: slice, instance: PhysxInstance, selected: NDArray[np.bool_], substeps: int) -> None:
        """Step the slots of an instance, and take over the states of those that are selected."""
        moved = np.flatnonzero(self._moved[rows] & selected[rows])
        if len(moved):
            instance.write_state(moved, {name: self.read(name)[rows] for name in _STATE})
            self._moved[rows][moved] = False
        timestep = self.scene.model.opt.timestep
        for substep in range(substeps):
            if self._sensing.differentiates and substep == substeps - 1:
                self._sensing.remember(rows, instance)
            instance.step(timestep)
        qpos, qvel = self.read('qpos')[rows], self.read('qvel')[rows]
        if selected[rows].all():
            instance.read_state(qpos, qvel)
            return
        new_qpos, new_qvel = qpos.copy(), qvel.copy()
        instance.read_state(new_qpos, new_qvel)
        own = selected[rows]
        qpos[own], qvel[own] = new_qpos[own], new_qvel[own]
        self._moved[rows] |= ~own  # PhysX has moved them, too

    def _measure(self) -> None:
        """Read contacts and joint forces of the last step, which takes PhysX long."""
        for rows, instance in self._instances:
            own = self._unread[rows]
            if own.any():
                for columns, forces in instance.measured():
                    self._sensors[rows][np.ix_(own, columns)] = forces[own]
        self._unread[:] = False

    def _push_models(self) -> None:
        """Write gains, masses and frictions to PhysX, if they may have changed."""
        if self._pushed_version == self.model_version and self._gains is not None:
            return
        self._pushed_version = self.model_version
        values = self.values
        self._gains = gains = self._drives.gains(
            values('actuator_gainprm'), values('actuator_biasprm'), values('jnt_stiffness')
        )
        shape = gains.stiffness.shape
        friction = np.stack([values('dof_frictionloss')] * 2 + [values('dof_damping')], axis=-1)
        dofs = {
            'STIFFNESS': gains.stiffness + gains.spring,
            'DAMPING': gains.damping,
            'MAX_FORCE': np.broadcast_to(self._drives.limits, shape),
            'ARMATURE': values('dof_armature'),
            'FRICTION_PROPERTIES': friction,
        }
        masses = {name: values(name) for name in _MASSES}
        frictions = values('geom_friction')[..., 0]
        for rows, instance in self._instances:
            instance.write_drives({name: array[rows] for name, array in dofs.items()})
            instance.write_masses({name: array[rows] for name, array in masses.items()})
            instance.write_frictions(frictions[rows])
        self._controls = None

    def _push_targets(self) -> Floats:
        """Write targets to PhysX, if they changed; returns the efforts they stand for."""
        assert self._gains is not None
        controls = self.read('ctrl')
        efforts = self._drives.efforts(self._gains, controls)
        if self._controls is not None and np.array_equal(controls, self._controls):
            return efforts
        self._controls = controls.copy()
        position, velocity, effort = self._drives.targets(self._gains, efforts)
        dofs = {'POSITION_TARGET': position, 'VELOCITY_TARGET': velocity, 'ACTUATION_FORCE': effort}
        for rows, instance in self._instances:
            instance.write_drives({name: array[rows] for name, array in dofs.items()})
        return efforts

    def _finite(self) -> NDArray[np.bool_]:
        """Return the slots whose state has not diverged."""
        values = np.concatenate([self.read('qpos'), self.read('qvel')], axis=1)
        return np.abs(values).max(axis=1, initial=0.0) < _FARTHEST  # NaN is not

    def _grow(self, first: int, capacity: int) -> None:
        """Add instances for slots from `first` on."""
        count = capacity - first
        parts = max(min(self.nthread, count // _FEWEST_SLOTS), 1)
        layout = self._physx.layout
        for slots in np.array_split(np.arange(first, capacity), parts):
            if len(slots):
                rows = slice(int(slots[0]), int(slots[-1]) + 1)
                self._instances.append((rows, PhysxInstance(layout, PhysxStage(layout.text, len(slots)))))
        self._gains = None  # to be written

    def _each(self, calls: list[Callable[[], None]]) -> None:
        if len(calls) <= 1 or self.nthread == 1:
            for call in calls:
                call()
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.nthread, 'internutopia-physx')
        for future in [self._pool.submit(call) for call in calls]:
            future.result()

    @override
    def _resize(self, capacity: int) -> None:
        first = self.capacity
        super()._resize(capacity)
        more = capacity - first
        self._moved = np.append(self._moved, np.ones(more, bool))
        self._unread = np.append(self._unread, np.zeros(more, bool))
        self._grow(first, capacity)

    @override
    def _reset(self, slot: int, state: Mapping[str, NDArray[Any]]) -> None:
        super()._reset(slot, state)
        self._moved[slot], self._unread[slot] = True, False

    @override
    def _set_engine_state(self, slot: int, state: Mapping[str, NDArray[Any]]) -> None:
        super()._set_engine_state(slot, state)
        self._moved[slot], self._unread[slot] = True, False

    @override
    def _get_engine_states(self, slots: slice | Slots) -> Arrays:
        return {**super()._get_engine_states(slots), 'sensors': self.sensors()[slots]}


def _close_all(instances: list[tuple[slice, PhysxInstance]]) -> None:
    for _, instance in instances:
        instance.close()
    instances.clear()
