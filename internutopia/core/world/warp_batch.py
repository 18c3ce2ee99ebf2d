"""`n` worlds of one model on a Warp device: state, steps, capacities.

A call of the engine is a fixed sequence of kernels over all worlds. On CUDA it is captured once as a graph and then
launched as a whole. Worlds that a step shall leave alone are computed like all others and then put back, bit for bit.

Contacts and constraints live in buffers of a fixed size. They begin with what the scene is likely to need; where that
was too little, the engine would drop contacts: the call is undone, the buffers are doubled, and it is made again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp
from numpy.typing import NDArray

from internutopia.core.util import log
from internutopia.core.world.warp_arrays import Mirror, copy_rows, find_bad, find_overflow, put_array, rows_of
from internutopia.core.world.warp_model import put_model

_MOVING = ('time', 'qpos', 'qvel', 'act', 'history', 'plastic', 'qacc_warmstart')  # a step changes them
STATE_FIELDS = (*_MOVING, 'ctrl', 'qfrc_applied', 'xfrc_applied', 'eq_active', 'mocap_pos', 'mocap_quat', 'userdata')
_STATIC = ('geom_xpos', 'geom_xmat')  # of geoms that never move: the engine does not compute them
_MAX_VALUE = 1e10  # mjMAXVAL: beyond it, numbers of a state are bad
_O = mjw.OverflowType
_CONTACTS = _O.BROADPHASE | _O.NARROWPHASE | _O.CCD
_UNBOUNDED = _O.HFIELD | _O.EPA_HORIZON | _O.TACTILE  # limits of the engine itself
_HIT: Any = (((), float), ((), int), ((3,), wp.vec3))  # shapes and types of what is known of where a ray hits
_GROWABLE = _CONTACTS | _O.NEFC | _O.NJMAX_NNZ | _O.CONTACT_MATCH


@dataclasses.dataclass
class Capacities:
    """How much there is room for."""

    contacts: int  # per world, in the mean
    constraints: int  # per world
    nonzeros: int | None = None  # of a sparse constraint Jacobian, per world; None is a guess of the engine
    matches: int = 64  # contacts per contact sensor

    @classmethod
    def of(cls, model: mujoco.MjModel) -> Capacities:
        """What a scene is likely to need: all its limits, and some contacts for each geom that moves."""
        moves = model.body_weldid[model.geom_bodyid] != 0
        touches = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        contacts = 16 + 2 * int((moves & touches).sum()) + 4 * model.npair
        rows = 2 * (int(max([3, *model.geom_condim, *model.pair_dim])) - 1)  # of the friction pyramid of a contact
        rest = 6 * model.neq + 2 * (model.njnt + model.ntendon) + int((model.dof_frictionloss > 0).sum())
        return cls(contacts, rows * contacts + rest)


class WarpBatch:
    """`n` worlds on a device, each at the model's defaults."""

    def __init__(self, model: mujoco.MjModel, n: int, device: wp.Device, capacities: Capacities | None = None):
        self.n = n
        self.device = device
        self.capacities = capacities or Capacities.of(model)
        self._host_model = model
        self._said = 0  # which limits of the engine were logged
        self._model = put_model(model, device)
        self._batched: dict[str, Mirror] = {}  # model fields with values of their own in each world
        with wp.ScopedDevice(device):
            self._chosen = Mirror(wp.zeros(n, dtype=bool))
            self._report = Mirror(wp.zeros((n, 3), dtype=int))
            self.efforts = Mirror(wp.zeros((n, model.nv), dtype=float))
            self.sensors = Mirror(wp.zeros((n, model.nsensordata), dtype=float))
        self._allocate()

    def field(self, name: str) -> Mirror:
        """An array of the engine's data."""
        if name not in self._fields:
            self._fields[name] = Mirror(getattr(self._data, name))
        return self._fields[name]

    def expand(self, name: str) -> Mirror:
        """A model field `(n, ...)` that has values of its own in each world from now on."""
        if name not in self._batched:
            shared = getattr(self._model, name)
            own = wp.array(np.repeat(shared.numpy(), self.n, axis=0), dtype=shared.dtype, device=self.device)
            setattr(self._model, name, own)
            self._batched[name] = Mirror(own)
            self._graphs.clear()
        return self._batched[name]

    def take(self, other: WarpBatch) -> None:
        """Take over the worlds of a smaller batch of the same model as the first ones."""
        other._upload()
        for name in other._batched:
            self.expand(name)
            _copy_first(getattr(other._model, name), getattr(self._model, name))
            self._batched[name].expire()
        self._copy_state(other._data)
        _copy_first(other.efforts.array, self.efforts.array)
        _copy_first(other.sensors.array, self.sensors.array)
        self._expire()

    def step(self, chosen: NDArray[np.bool_], substeps: int, kinematics: bool) -> NDArray[np.int32]:
        """Advance the worlds that are chosen, `(n,)`; the others do not change.

        Returns:
            `(n, 3)`: what is wrong in each world now (an index of `BAD_QUANTITIES`), and in which column.
        """
        if not np.array_equal(self._chosen.read(), chosen):
            self._chosen.write()[:] = chosen
        self._call(('step', substeps, kinematics), lambda: self._step(substeps, kinematics))
        return self._report.read()

    def forward(self) -> None:
        """Compute everything that follows from the state of all worlds, sensors included."""
        self._call(('forward',), self._forward)

    def kinematics(self) -> None:
        """Compute the poses and velocities of bodies from the state of all worlds."""
        self._upload()
        self._launch(('kinematics',), self._kinematics)
        self._expire()

    def ray(
        self, origins: NDArray[np.float32], directions: NDArray[np.float32], seen: NDArray[np.bool_], body: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Distances [m] and geoms hit by rays `(n, rays, 3)`, -1 for misses; after `kinematics`.

        Args:
            origins: of the rays [m].
            directions: of the rays, unit vectors.
            seen: the groups of geoms that rays see, `(mjNGROUP,)`.
            body: whose geoms they do not see.
        """
        self._upload()
        shape = origins.shape[:2]
        groups: Any = wp.types.vector(mujoco.mjNGROUP, float)(*seen.astype(float).tolist())
        with wp.ScopedDevice(self.device):
            starts, along = (put_array(values, wp.vec3) for values in (origins, directions))
            excluded = put_array(np.full(shape[1], body), int)
            distances, geoms, normals = (put_array(np.zeros(shape + end), t) for end, t in _HIT)
            mjw.rays(self._model, self._data, starts, along, groups, True, excluded, distances, geoms, normals)
        return distances.numpy(), geoms.numpy()

    def _allocate(self) -> None:
        """New arrays, of the sizes that `capacities` says. MemoryError if they do not fit on the device."""
        model, room = self._host_model, self.capacities
        with wp.ScopedDevice(self.device):
            try:
                self._data = mjw.make_data(
                    model, self.n, nconmax=room.contacts, njmax=room.constraints, njmax_nnz=room.nonzeros
                )
            except RuntimeError as error:
                if 'allocate' not in str(error):
                    raise
                raise MemoryError(
                    f'{self.n} envs with room for {room.contacts} contacts and {room.constraints} constraints each do '
                    f'not fit into the memory of {self.device}: use a smaller env_num ({error})'
                ) from error
            self._model.opt.contact_sensor_maxmatch = room.matches
            arrays = {name: getattr(self._data, name) for name in _MOVING}
            self._moving = {name: rows_of(array) for name, array in arrays.items() if array.size}
            self._before = {name: wp.zeros_like(array) for name, array in self._moving.items()}
        self._fields: dict[str, Mirror] = {}
        self._graphs: dict[tuple[Any, ...], Any] = {}
        self._loaded: set[tuple[Any, ...]] = set()

    def _copy_state(self, data: mjw.Data) -> None:
        """Take over the state of as many worlds as there are in `data`."""
        for name in (*STATE_FIELDS, *_STATIC):
            _copy_first(getattr(data, name), getattr(self._data, name))

    def _upload(self) -> None:
        for mirror in (self._chosen, self.efforts, self.sensors, *self._fields.values(), *self._batched.values()):
            mirror.upload()

    def _expire(self) -> None:
        for mirror in (self._report, self.efforts, self.sensors, *self._fields.values()):
            mirror.expire()

    def _call(self, key: tuple[Any, ...], call: Callable[[], None]) -> None:
        """Make a call until the buffers are large enough for it."""
        self._upload()
        while True:
            self._launch(key, call)
            self._expire()
            flags = int(np.bitwise_or.reduce(self._report.read()[:, 2]))
            if flags & _UNBOUNDED & ~self._said:
                self._said |= flags & _UNBOUNDED
                log.warning('mujoco_warp left out contacts: %s', mjw.OverflowType(flags & _UNBOUNDED))
            if not flags & _GROWABLE:
                return
            for name, array in self._moving.items():
                wp.copy(array, self._before[name])
            self._grow(flags)

    def _launch(self, key: tuple[Any, ...], call: Callable[[], None]) -> None:
        with wp.ScopedDevice(self.device):
            if self.device.is_cpu or key not in self._loaded:
                call()  # compiles and loads kernels, which cannot be captured
                self._loaded.add(key)
                return
            if key not in self._graphs:
                with wp.ScopedCapture(self.device) as capture:
                    call()
                self._graphs[key] = capture.graph
            wp.capture_launch(self._graphs[key])

    def _step(self, substeps: int, kinematics: bool) -> None:
        data = self._data
        self._begin()
        for _ in range(substeps):
            mjw.step(self._model, data)
        self._look_for_overflow()
        for kind, values in enumerate((data.ctrl, data.qpos, data.qvel, data.qacc), 1):
            wp.launch(find_bad, self.n, [values, kind, _MAX_VALUE], [self._report.array])
        self._copy_rows(True, data.qfrc_actuator, self.efforts.array)
        self._copy_rows(True, data.sensordata, self.sensors.array)
        for name, array in self._moving.items():
            self._copy_rows(False, self._before[name], array)
        if kinematics:
            self._kinematics()

    def _forward(self) -> None:
        self._begin()
        mjw.forward(self._model, self._data)
        self._look_for_overflow()

    def _kinematics(self) -> None:
        mjw.fwd_kinematics(self._model, self._data)
        mjw.com_vel(self._model, self._data)

    def _begin(self) -> None:
        """Keep the state that the worlds have now."""
        for name, array in self._moving.items():
            wp.copy(self._before[name], array)
        self._data.overflow.zero_()
        self._report.array.zero_()

    def _look_for_overflow(self) -> None:
        data = self._data
        counters = [data.overflow, data.nefc, data.nacon, data.ncollision]
        limits = [data.njmax, data.naconmax, int(_O.NEFC), int(_O.NARROWPHASE)]
        wp.launch(find_overflow, self.n, [*counters, *limits], [self._report.array])

    def _copy_rows(self, which: bool, source: Any, target: Any) -> None:
        wp.launch(copy_rows, target.shape, [self._chosen.array, which, source], [target])

    def _grow(self, flags: int) -> None:
        """Double the buffers that were too small; the worlds keep their state."""
        old, room = self._data, self.capacities
        if flags & _CONTACTS:
            room = dataclasses.replace(room, contacts=2 * room.contacts)
        if flags & _O.NEFC:
            room = dataclasses.replace(room, constraints=2 * room.constraints)
        if flags & _O.CONTACT_MATCH:
            room = dataclasses.replace(room, matches=2 * room.matches)
        if flags & _O.NJMAX_NNZ or room.nonzeros is not None:
            room = dataclasses.replace(room, nonzeros=room.constraints * self._host_model.nv)
        log.warning('%d envs need more room than there was: it grows from %s to %s', self.n, self.capacities, room)
        self.capacities = room
        self._allocate()
        self._copy_state(old)


def _copy_first(source: Any, target: Any) -> None:
    """Copy to the first rows of an array."""
    if source.size:
        wp.copy(target[: source.shape[0]], source)
