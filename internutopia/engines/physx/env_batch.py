"""Env batch on PhysX: states, models and all that follows from them are MuJoCo's, steps are PhysX's.

A `MujocoEnvBatch` holds positions and velocities, computes poses, casts rays and keeps what was changed per slot. A
step writes what was changed to PhysX, and reads positions and velocities back. Slots live on stages of PhysX: a batch
that grows gets another one, so no slot that is there is touched, and they are stepped on threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.env_batch import Arrays, Index, Slots
from internutopia.engines.mujoco.env_batch import MujocoEnvBatch
from internutopia.engines.physx.drives import Drives, Floats, Gains
from internutopia.engines.physx.instance import PhysxInstance
from internutopia.engines.physx.physx_scene import CHANGEABLE, MASSES, STATE, VISUAL, physx_scene
from internutopia.engines.physx.sensors import Sensors
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import TensorAccess
from internutopia.model.compiled import CompiledScene

_FEWEST_SLOTS = 4  # of a stage: fewer are not worth a thread
_FARTHEST = 1e10  # [m, rad, and per s] what is beyond has diverged, for MuJoCo, too

OpenStage = Callable[[StageLayout, int], TensorAccess]
"""Opens a stage with so many slots of what a layout describes."""


@dataclass
class _Part:
    """Slots on one stage."""

    rows: slice
    stage: TensorAccess
    instance: PhysxInstance | None = None


class PhysxEnvBatch(MujocoEnvBatch):
    """The envs of one model structure on PhysX. `bind` it before the first step, and when it has grown.

    Args:
        scene: of which the envs have the structure.
        capacity: number of slots.
        nthread: threads, and stages if there are enough slots.
        layout: prims of one env.
        open_stage: opens stages.
    """

    fields = CHANGEABLE | VISUAL

    def __init__(self, scene: CompiledScene, capacity: int, nthread: int, layout: StageLayout, open_stage: OpenStage):
        super().__init__(scene, capacity, nthread)
        self._layout = layout
        self._open_stage = open_stage
        self._drives: Drives = physx_scene(scene).drives
        self._sensing = Sensors(self)
        self._parts: list[_Part] = []
        self._moved = np.ones(capacity, bool)  # slots whose state PhysX does not have
        self._pushed_version = -1  # of the models that PhysX has
        self._gains: Gains | None = None
        self._controls: Floats | None = None  # that PhysX has
        self._unread = np.zeros(capacity, bool)  # slots whose sensors were not read since the last step
        self._pool: ThreadPoolExecutor | None = None
        self._selected = np.zeros(capacity, bool)  # slots of the step that is made
        self._pushed_efforts = np.zeros((capacity, scene.model.nv))
        self._sound = np.zeros(capacity, bool)  # slots that had not diverged before it
        self._close = finalize(self, _close_all, self._parts)
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
        self.begin_step(slots)
        parts = [part for part in self._parts if self._selected[part.rows].any()]
        self._each([functools.partial(self._advance, part, substeps) for part in parts])
        return self.finish_step(substeps)

    def begin_step(self, slots: Slots | None) -> None:
        """Write what was changed to PhysX, for a step of some slots; None for all."""
        self._selected = np.zeros(self.capacity, bool)
        self._selected[slice(None) if slots is None else slots] = True
        if (self._unread & ~self._selected).any():
            self._measure()
        self._push_models()
        self._pushed_efforts = self._push_targets()
        self._sensing.begin()
        self._sound = self._finite()  # what is put too far away, PhysX may bring back
        for part in self._parts:
            moved = np.flatnonzero(self._moved[part.rows] & self._selected[part.rows])
            if len(moved):
                _instance(part).write_state(moved, {name: self.read(name)[part.rows] for name in STATE})
                self._moved[part.rows][moved] = False

    def begin_last_substep(self) -> None:
        """Remember what sensors need of the state before the last time step of a step."""
        for part in self._parts:
            self._remember(part)

    def finish_step(self, substeps: int) -> dict[int, str]:
        """Take over the states after so many time steps; returns {env id: reason} for those that failed."""
        selected = self._selected
        for part in self._parts:
            self._read_states(part)
        bad = selected & ~(self._sound & self._finite())
        self.read('time')[selected] += substeps * self.scene.model.opt.timestep
        assert self._gains is not None
        applied = self._drives.applied(self._gains, self._pushed_efforts, self.read('qpos'), self.read('qvel'))
        self._efforts[selected] = applied[selected]
        self._stale[selected] = True
        self._unmeasured[selected] = False
        self._unread[selected] = True
        self._sensing.follow(self._sensors, self._efforts, selected)
        if self._was_read:
            self._was_read = False
            self._derive()
        reason = 'the simulation diverged: its state is not finite any more'
        return {int(self.envs[slot]): reason for slot in np.flatnonzero(bad).tolist() if self.envs[slot] >= 0}

    def bind(self, anew: bool = False) -> None:
        """Bind the tensors of new stages; `anew`: of all stages, which have lost their state."""
        for part in self._parts:
            if anew or part.instance is None:
                part.instance = PhysxInstance(self._layout, part.stage)
                self._moved[part.rows] = True
                self._unread[part.rows] = False
                self._gains = None  # to be written

    def close(self) -> None:
        """Free the stages of PhysX."""
        self._close()
        if self._pool is not None:
            self._pool.shutdown()

    def _advance(self, part: _Part, substeps: int) -> None:
        """Make time steps on one stage."""
        timestep = self.scene.model.opt.timestep
        for substep in range(substeps):
            if substep == substeps - 1:
                self._remember(part)
            part.stage.step(timestep)

    def _remember(self, part: _Part) -> None:
        if self._sensing.differentiates:
            self._sensing.remember(part.rows, _instance(part))

    def _read_states(self, part: _Part) -> None:
        """Take over the states of the slots that made a step; PhysX has moved the others of their stage, too."""
        rows, own = part.rows, self._selected[part.rows]
        qpos, qvel = self.read('qpos')[rows], self.read('qvel')[rows]
        if own.all():
            _instance(part).read_state(qpos, qvel)
        elif own.any():
            new_qpos, new_qvel = qpos.copy(), qvel.copy()
            _instance(part).read_state(new_qpos, new_qvel)
            qpos[own], qvel[own] = new_qpos[own], new_qvel[own]
        if own.any() or part.stage.shared:
            self._moved[rows] |= ~own

    def _measure(self) -> None:
        """Read contacts and joint forces of the last step, which takes PhysX long."""
        for part in self._parts:
            own = self._unread[part.rows]
            if own.any():
                for columns, forces in _instance(part).measured():
                    self._sensors[part.rows][np.ix_(own, columns)] = forces[own]
        self._unread[:] = False

    def _push_models(self) -> None:
        """Write gains, masses and frictions to PhysX, if they may have changed."""
        if self._pushed_version == self.model_version and self._gains is not None:
            return
        self._pushed_version = self.model_version
        self._gains = self._drives.gains(self.values)
        dofs = self._drives.properties(self._gains, self.values)
        masses = [self.values(name) for name in MASSES]
        frictions = self.values('geom_friction')[..., 0]
        for part in self._parts:
            instance, rows = _instance(part), part.rows
            instance.write_drives({name: array[rows] for name, array in dofs.items()})
            instance.write_masses([array[rows] for array in masses])
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
        dofs = self._drives.targets(self._gains, efforts)
        for part in self._parts:
            _instance(part).write_drives({name: array[part.rows] for name, array in dofs.items()})
        return efforts

    def _finite(self) -> NDArray[np.bool_]:
        """Return the slots whose state has not diverged."""
        values = np.concatenate([self.read('qpos'), self.read('qvel')], axis=1)
        return np.abs(values).max(axis=1, initial=0.0) < _FARTHEST  # NaN is not

    def _grow(self, first: int, capacity: int) -> None:
        """Open stages for slots from `first` on."""
        count = capacity - first
        parts = max(min(self.nthread, count // _FEWEST_SLOTS), 1)
        for slots in np.array_split(np.arange(first, capacity), parts):
            if len(slots):
                rows = slice(int(slots[0]), int(slots[-1]) + 1)
                self._parts.append(_Part(rows, self._open_stage(self._layout, len(slots))))

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
    def _grown(self, needed: int) -> int:
        return max(needed, self.capacity + _FEWEST_SLOTS)  # no slot that is there is moved: it may grow often

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


def _instance(part: _Part) -> PhysxInstance:
    assert part.instance is not None, 'bind it first'
    return part.instance


def _close_all(parts: list[_Part]) -> None:
    for part in parts:
        part.stage.close()
    parts.clear()
