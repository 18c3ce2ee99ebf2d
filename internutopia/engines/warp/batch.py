"""Warp batch: `n` worlds of one model on a device, their state, steps and buffers.

A call of the engine is a fixed sequence of kernels over all worlds. On CUDA it is captured once as a graph and then
launched as a whole. Worlds that a step shall leave alone are computed like all others and then put back, bit for bit.

Contacts and constraints live in buffers of a fixed size. They begin with what the scene is likely to need; where that
was too little, the engine would drop contacts: the call is undone, the buffers are doubled, and it is made again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp
from numpy.typing import NDArray

from internutopia.engines.warp.arrays import (
    HostMirror,
    as_rows,
    compiling_shown,
    copy_rows,
    find_bad,
    find_failed,
    find_overflow,
    memory_checked,
)
from internutopia.engines.warp.model import GROWABLE, Capacities, put_model
from internutopia.util import log

_MOVING = ('time', 'qpos', 'qvel', 'act', 'history', 'plastic', 'qacc_warmstart')  # a step changes them
STATE_FIELDS = (*_MOVING, 'ctrl', 'qfrc_applied', 'xfrc_applied', 'eq_active', 'mocap_pos', 'mocap_quat', 'userdata')
_STATIC = ('geom_xpos', 'geom_xmat')  # of geoms that never move: the engine does not compute them
_MAX_VALUE = 1e10  # mjMAXVAL: beyond it, numbers of a state are bad
OF_MASSES = (
    *('body_subtreemass', 'body_invweight0', 'dof_invweight0', 'tendon_invweight0', 'actuator_acc0'),
    *('cam_poscom0', 'light_poscom0'),
)  # what `mjw.set_const` derives from masses and inertias, and what else it writes
_NOT_OF_MASSES = (
    *('geom_aabb', 'geom_rbound', 'geom_size', 'tendon_length0', 'eq_data'),
    *('cam_pos0', 'cam_mat0', 'light_pos0', 'light_dir0'),
)
_O = mjw.OverflowType
_UNBOUNDED = _O.HFIELD | _O.EPA_HORIZON | _O.TACTILE  # limits of the engine itself
_HIT: Any = (((), float), ((), int), ((3,), wp.vec3))  # shapes and types of a hit: distance, geom, normal

_Calls = dict[tuple[Any, ...], Any]  # by what is called: those that were made, with their graph once it is captured


class WarpBatch:
    """`n` worlds on a device, each at the model's defaults."""

    def __init__(self, model: mujoco.MjModel, n: int, device: wp.Device, capacities: Capacities | None = None):
        self.n = n
        self.device = device
        self.capacities = capacities or Capacities.of(model)
        self.model = model
        self._logged = 0  # which limits of the engine were logged
        self._model = put_model(model, device)
        self._batched: dict[str, HostMirror] = {}  # model fields with their own values in each world
        self._starts: dict[str, Any] = {}  # how worlds begin: rows of state fields and batched model fields
        self._mirrors: list[HostMirror] = []
        with wp.ScopedDevice(device):
            self.selected = HostMirror(wp.zeros(n, dtype=bool))
            self.failed = HostMirror(wp.zeros(n, dtype=bool))
            self.overflow = HostMirror(wp.zeros(1, dtype=int))  # flags of all steps since they were cleared
            self._report = HostMirror(wp.zeros((n, 3), dtype=int), self._mirrors)
            self.efforts = HostMirror(wp.zeros((n, model.nv), dtype=float), self._mirrors)
            self.sensors = HostMirror(wp.zeros((n, model.nsensordata), dtype=float), self._mirrors)
        self._allocate()

    def field(self, name: str) -> HostMirror:
        """Return an array of the engine's data."""
        if name not in self._fields:
            self._fields[name] = HostMirror(getattr(self._data, name), self._mirrors)
        return self._fields[name]

    def expand(self, name: str) -> HostMirror:
        """Return a model field `(n, ...)` that has its own values in each world from now on."""
        if name not in self._batched:
            shared = getattr(self._model, name)
            own = wp.array(np.repeat(shared.numpy(), self.n, axis=0), dtype=shared.dtype, device=self.device)
            setattr(self._model, name, own)
            self._batched[name] = HostMirror(own)
            for calls in (self._calls, *self._tracer_calls.values()):
                calls.update(dict.fromkeys(calls))
            if self._starts:
                self._starts[name] = as_rows(wp.clone(own))
        return self._batched[name]

    @cached_property
    def stream(self) -> wp.Stream:
        """A CUDA stream on which this batch can be stepped alongside others.

        One of torch's, which never end: what torch frees waits for all streams that used it, also those of a batch
        that is gone.
        """
        import torch

        return wp.stream_from_torch(torch.cuda.Stream(str(self.device)))

    def select(self, selected: NDArray[np.bool_]) -> None:
        """Select the worlds, `(n,)`, that the next calls are for."""
        if not np.array_equal(self.selected.read(), selected):
            self.selected.write()[:] = selected

    def values(self, name: str) -> Any:
        """Return a model field `(n, ...)` as a tensor, not to be written to."""
        if name in self._batched:
            return self._batched[name].tensor()
        shared = wp.to_torch(getattr(self._model, name), requires_grad=False)
        return shared.expand(self.n, *shared.shape[1:])

    def take(self, other: WarpBatch) -> None:
        """Take over the worlds of a smaller batch of the same model as the first ones."""
        other._upload()
        for name in other._batched:
            self.expand(name)
            _copy_first(getattr(other._model, name), getattr(self._model, name))
            self._batched[name].invalidate()
        self._copy_state(other._data)
        _copy_first(other.efforts.array, self.efforts.array)
        _copy_first(other.sensors.array, self.sensors.array)
        if other._starts:
            self.store_starts(np.zeros(self.n, bool))
            for name, rows in other._starts.items():
                _copy_first(rows, self._starts[name])
        self._invalidate()

    def step(self, selected: NDArray[np.bool_], substeps: int, kinematics: bool) -> NDArray[np.int32]:
        """Advance the worlds that are selected, `(n,)`; the others do not change.

        Returns:
            `(n, 3)`: what was wrong in each world (an index of `BAD_QUANTITIES`), and in which column. Worlds that
            were selected and went wrong are at the model's defaults now: bad numbers would go on from step to step.
        """
        self.select(selected)
        self._call(*self._step_call(substeps, kinematics))
        return self._report.read()

    def launch_step(self, substeps: int, kinematics: bool) -> None:
        """Advance the worlds in `selected`, without waiting for it.

        `failed` then has which went wrong; `overflow` whether buffers were too small, so that contacts are missing.
        """
        self._launch(*self._step_call(substeps, kinematics))

    def store_starts(self, selected: NDArray[np.bool_]) -> None:
        """Store the current state of the selected worlds, which `launch_reset` restores."""
        self.select(selected)
        self._upload()
        with wp.ScopedDevice(self.device):
            for name, rows in self._resettable():
                if name not in self._starts:
                    self._starts[name] = wp.clone(rows)
                self._copy_rows(self.selected, True, rows, self._starts[name])

    def launch_reset(self) -> None:
        """Start the worlds in `selected` afresh, without waiting for it."""
        self._launch(('reset',), self._reset_selected)

    def forward(self) -> None:
        """Compute everything that follows from the state of all worlds, sensors included; the state stays as it is."""
        self._call(('forward',), self._forward)

    def kinematics(self) -> None:
        """Compute the poses and velocities of bodies from the state of all worlds."""
        self._launch(('kinematics',), self._kinematics)

    def set_constants(self) -> None:
        """Compute what follows from the masses and inertias of the worlds in `selected`."""
        for name in OF_MASSES:
            self.expand(name)
        self._upload()
        model = self._model
        with wp.ScopedDevice(self.device):
            before = {name: wp.clone(getattr(model, name)) for name in (*OF_MASSES, *_NOT_OF_MASSES)}
            mjw.set_const(model, self._data)
            for name in OF_MASSES:
                rows = as_rows(before[name]), as_rows(getattr(model, name))
                self._copy_rows(self.selected, False, *rows)
                self._batched[name].invalidate()
            for name in _NOT_OF_MASSES:  # only rounding would change
                wp.copy(getattr(model, name), before[name])
        self._invalidate()

    def trace(self, name: str, tracer: object, trace: Callable[[mjw.Model, mjw.Data], None]) -> None:
        """Call `trace`, a fixed sequence of kernels of a tracer of rays, after `kinematics`.

        Its captured graph, `name` among those of the tracer, is dropped together with the tracer.
        """
        calls = self._tracer_calls.setdefault(tracer, {})
        self._launch((name,), lambda: trace(self._model, self._data), calls)

    def ray(
        self, origins: NDArray[np.float32], directions: NDArray[np.float32], seen: NDArray[np.bool_]
    ) -> NDArray[np.float32]:
        """Return the distances [m] along rays, `(n, rays)`, infinite for misses; after `kinematics`.

        Args:
            origins: of the rays `(n, rays, 3)` [m].
            directions: of the rays `(n, rays, 3)`, unit vectors.
            seen: the geoms that stop rays, `(ngeom,)`.
        """
        self._upload()
        shape = origins.shape[:2]
        first: Any = wp.types.vector(mujoco.mjNGROUP, float)(1.0, *[0.0] * (mujoco.mjNGROUP - 1))
        model = copy.copy(self._model)
        with wp.ScopedDevice(self.device):
            new: Any = wp.array
            model.geom_group = new(np.where(seen, 0, 1), dtype=int)
            starts, along = (new(values, dtype=wp.vec3) for values in (origins, directions))
            excluded = new(np.full(shape[1], -1), dtype=int)
            distances, geoms, normals = (new(np.zeros(shape + end), dtype=t) for end, t in _HIT)
            mjw.rays(model, self._data, starts, along, first, True, excluded, distances, geoms, normals)
        return np.where(geoms.numpy() < 0, np.inf, distances.numpy())

    def _allocate(self) -> None:
        """Allocate arrays of the sizes in `capacities`. MemoryError if they do not fit on the device."""
        model, capacities = self.model, self.capacities
        what = (
            f'{self.n} envs with room for {capacities.contacts} contacts and {capacities.constraints} constraints each'
        )
        with wp.ScopedDevice(self.device):
            with memory_checked(what, 'a smaller env_num'):
                self._data = mjw.make_data(
                    model,
                    self.n,
                    nconmax=capacities.contacts,
                    njmax=capacities.constraints,
                    njmax_nnz=capacities.nonzeros,
                )
            self._model.opt.contact_sensor_maxmatch = capacities.matches
            arrays = {name: getattr(self._data, name) for name in _MOVING}
            self._moving = {name: as_rows(array) for name, array in arrays.items() if array.size}
            self._before = {name: wp.zeros_like(array) for name, array in self._moving.items()}
            states = {name: as_rows(getattr(self._data, name)) for name in STATE_FIELDS}
            self._state = {name: rows for name, rows in states.items() if rows.size}
            self._defaults = {name: wp.clone(rows[:1]) for name, rows in self._state.items()}
            self._zeros = [wp.zeros((1, mirror.array.shape[1]), dtype=float) for mirror in self._results]
        self._fields: dict[str, HostMirror] = {}
        self._mirrors[:] = [self._report, *self._results]
        self._calls: _Calls = {}
        self._tracer_calls: WeakKeyDictionary[object, _Calls] = WeakKeyDictionary()

    @property
    def _results(self) -> tuple[HostMirror, HostMirror]:
        return self.efforts, self.sensors

    def _resettable(self) -> Iterator[tuple[str, Any]]:
        """Yield the arrays, by name, that differ between the initial states of worlds."""
        yield from self._state.items()
        if self.sensors.array.size:
            yield 'sensors', self.sensors.array
        for name, mirror in self._batched.items():
            yield name, as_rows(mirror.array)

    def _copy_state(self, data: mjw.Data) -> None:
        """Take over the state of as many worlds as there are in `data`."""
        for name in (*STATE_FIELDS, *_STATIC):
            _copy_first(getattr(data, name), getattr(self._data, name))

    def _upload(self) -> None:
        for mirror in (self.selected, self.overflow, *self._results, *self._fields.values(), *self._batched.values()):
            mirror.upload()

    def _invalidate(self) -> None:
        for mirror in (self._report, self.failed, self.overflow, *self._results, *self._fields.values()):
            mirror.invalidate()

    def _call(self, key: tuple[Any, ...], call: Callable[[], None]) -> None:
        """Make a call until the buffers are large enough for it."""
        while True:
            self._launch(key, call)
            flags = int(np.bitwise_or.reduce(self._report.read()[:, 2]))
            if not self.grow_buffers(flags, retry=True):
                return

    def grow_buffers(self, flags: int, retry: bool) -> bool:
        """Enlarge what was too small, and log it; the worlds keep the state that they have, or, to `retry`, had.

        Args:
            flags: of `mjw.OverflowType`.
            retry: whether the call in which they were raised is undone and will be made again.

        Returns:
            Whether something was enlarged.
        """
        if flags & _UNBOUNDED & ~self._logged:
            self._logged |= flags & _UNBOUNDED
            log.warning('mujoco_warp left out contacts: %s', mjw.OverflowType(flags & _UNBOUNDED))
        if not flags & GROWABLE:
            return False
        if retry:
            for name, array in self._moving.items():
                wp.copy(array, self._before[name])
        else:
            log.warning('contacts or constraints were left out in previous steps: the buffers were too small')
        old, capacities = self._data, self.capacities.grown(flags, self.model.nv)
        log.warning('%d envs need larger buffers: they grow from %s to %s', self.n, self.capacities, capacities)
        self.capacities = capacities
        self._allocate()
        self._copy_state(old)
        return True

    def _launch(self, key: tuple[Any, ...], call: Callable[[], None], calls: _Calls | None = None) -> None:
        """Make a call of the engine after what the host wrote; its results are fetched when they are read."""
        calls = self._calls if calls is None else calls
        self._upload()
        with wp.ScopedDevice(self.device):
            if key not in calls:
                with compiling_shown(self.device):
                    call()  # compiles and loads kernels, which cannot be captured
                calls[key] = None
            elif self.device.is_cpu:
                call()
            else:
                if calls[key] is None:
                    # on its own stream: torch works on the default stream, which cannot be captured
                    with wp.ScopedStream(self.stream), wp.ScopedCapture(stream=self.stream) as capture:
                        call()
                    calls[key] = capture.graph
                wp.capture_launch(calls[key])
        self._invalidate()

    def _step_call(self, substeps: int, kinematics: bool) -> tuple[tuple[Any, ...], Callable[[], None]]:
        return ('step', substeps, kinematics), lambda: self._step(substeps, kinematics)

    def _step(self, substeps: int, kinematics: bool) -> None:
        data = self._data
        self._begin()
        self._integrate(substeps)
        self._find_overflow()
        for kind, values in enumerate((data.ctrl, data.qpos, data.qvel, data.qacc), 1):
            wp.launch(find_bad, self.n, [values, kind, _MAX_VALUE], [self._report.array])
        wp.launch(find_failed, self.n, [self.selected.array, self._report.array], [self.failed.array])
        self._copy_rows(self.selected, True, data.qfrc_actuator, self.efforts.array)
        self._copy_rows(self.selected, True, data.sensordata, self.sensors.array)
        for name, array in self._moving.items():
            self._copy_rows(self.selected, False, self._before[name], array)
        for name, array in self._state.items():
            self._copy_rows(self.failed, True, self._defaults[name], array)
        self._clear_results(self.failed)
        if kinematics:
            self._kinematics()

    def _integrate(self, substeps: int) -> None:
        for _ in range(substeps):
            mjw.step(self._model, self._data)

    def _reset_selected(self) -> None:
        self._clear_results(self.selected)
        for name, rows in self._resettable():
            self._copy_rows(self.selected, True, self._starts[name], rows)

    def _clear_results(self, worlds: HostMirror) -> None:
        """Zero the measurements of these worlds."""
        for mirror, zeros in zip(self._results, self._zeros, strict=True):
            self._copy_rows(worlds, True, zeros, mirror.array)

    def _forward(self) -> None:
        self._begin()
        mjw.forward(self._model, self._data)
        self._find_overflow()
        for name, array in self._moving.items():  # the warm start of the solver
            wp.copy(array, self._before[name])

    def _kinematics(self) -> None:
        mjw.fwd_kinematics(self._model, self._data)
        mjw.com_vel(self._model, self._data)

    def _begin(self) -> None:
        """Keep the current state of the worlds."""
        for name, array in self._moving.items():
            wp.copy(self._before[name], array)
        self._data.overflow.zero_()
        self._report.array.zero_()

    def _find_overflow(self) -> None:
        data = self._data
        counters = [data.overflow, data.nefc, data.nacon, data.ncollision]
        limits = [data.njmax, data.naconmax, int(_O.NEFC), int(_O.NARROWPHASE)]
        wp.launch(find_overflow, self.n, [*counters, *limits], [self._report.array, self.overflow.array])

    def _copy_rows(self, worlds: HostMirror, which: bool, source: Any, target: Any) -> None:
        if target.size:
            wp.launch(copy_rows, target.shape, [worlds.array, which, source], [target])


def _copy_first(source: Any, target: Any) -> None:
    """Copy to the first rows of an array."""
    if source.size:
        wp.copy(target[: source.shape[0]], source)
