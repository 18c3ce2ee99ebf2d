"""View base of worlds of MuJoCo models: what the batched views of robots, bodies and cameras share.

A view has a slice for each env batch that holds what it shows, and addresses in `qpos`, `ctrl`, ... there. Reading
gathers cells of every slice into one `(env_num, ...)` float32 buffer, once per state version; writing scatters rows.
Both are bound once for the envs and slots that there are. Where addresses are evenly spaced they are Python slices, so
that the common case, one batch with every env in order, copies blocks. Of its world a view sees `ViewContext` only.

The same code serves numpy arrays and, in a `DeviceWorld`, torch tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.batched.env_batch import BatchArrays, EnvBatch, Index, as_index
from internutopia.engines.views import EnvIds
from internutopia.model.compiled import CompiledScene
from internutopia.rendering.camera import Quality, RenderRequest
from internutopia.util.arrays import ArrayMaker, expand_mask, is_tensor, masked_assign, namespace_of

T = TypeVar('T')

_SELECTIONS_KEPT = 32  # of envs, that setters wrote to


class ViewContext(Protocol):
    """The part of a `BatchedWorld` that its views need."""

    env_num: int
    arrays: ArrayMaker
    version: int
    write_mask: Any
    placement: bytes
    env_batches: list[EnvBatch]
    batch_id: NDArray[np.intp]
    slot: NDArray[np.intp]
    render_quality: Quality

    @property
    def scenes(self) -> Sequence[CompiledScene | None]:
        """The compiled scene that each env runs, None for those that run none."""
        ...

    def scene(self, env_id: int) -> CompiledScene:
        """The compiled scene that an env runs; ValueError if it runs none."""
        ...

    def batch_arrays(self, env_batch: EnvBatch) -> BatchArrays:
        """What views read and write of a batch."""
        ...

    def upload(self, index: Index) -> Index:
        """An index that suits the arrays that views read and write."""
        ...

    def run_batches(self, calls: Sequence[tuple[BatchArrays, Callable[[], T]]]) -> list[T]:
        """Make calls of batches and return their results, in no particular order."""
        ...

    def set_self_collisions(self, robot: str, env_ids: EnvIds, enabled: bool) -> None:
        """Let links of a robot collide with each other, or not."""
        ...

    def capture(self, env_ids: EnvIds) -> Callable[[Sequence[RenderRequest]], None]:
        """Return a function that renders images of envs as they are now."""
        ...


class Cells(NamedTuple):
    """Cells of an array of a batch, which `array` returns."""

    array: Callable[[], Any]
    where: Any


class Source(NamedTuple):
    """Origin of a quantity in the envs of one slice: cells, and the function, if any, that computes it from them.

    Without cells the quantity is 0.
    """

    cells: Sequence[Cells]
    compute: Callable[..., tuple[Any, ...]] | None = None


@dataclass(frozen=True)
class ViewSlice:
    """The envs of one batch that hold what a view shows: their `slots` in the batch, and `envs`, rows of the view."""

    batch: BatchArrays
    slots: Index
    envs: Index
    layout: Any
    upload: Callable[[Index], Index]  # makes an index suit the arrays of the batch
    _found: dict[Hashable, Any] = field(default_factory=dict)

    def index(self, ids: NDArray[np.intp]) -> Index:
        """Return an index that suits the arrays of the batch."""
        return self.upload(as_index(ids))

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """Return what `find` returned when it was called first for this key."""
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]

    def joints(self, address: str, joints: Any = slice(None)) -> Index:
        """Return addresses of some joints of a robot.

        Args:
            address: a field of its layout (`'qpos'`, `'dof'`, `'controls'`), or a kind of targets, for the actuators
                that take them.
            joints: indices or a slice.
        """
        key = address, joints_key(joints)
        found = self._found.get(key)
        if found is None:
            ids = self.layout.targets.get(address)
            found = self._found[key] = self.index((getattr(self.layout, address) if ids is None else ids)[joints])
        return found

    def cells(self, array: Callable[[], Any], columns: Any) -> Cells:
        """Return cells of an array of the batch, which `array` returns."""
        return Cells(array, cells(self.slots, columns))

    def field(self, name: str, columns: Any) -> Cells:
        """Return cells of a field of the state, or of poses or velocities of bodies."""
        return self.cells(functools.partial(self.batch.read, name), columns)

    def values(self, name: str, columns: Any) -> Cells:
        """Return cells of a field of the model."""
        return self.cells(functools.partial(self.batch.values, name), columns)


@dataclass(frozen=True)
class WriteTarget:
    """Destination of a setter's values in one batch: its slots, and the rows of the values that are for them."""

    view_slice: ViewSlice
    batch: BatchArrays  # of the slice
    slots: Index
    rows: Index
    mask: Any = None  # `(slots,)`, those that are written; None for all
    _found: dict[Hashable, Any] = field(default_factory=dict)

    def joints(self, address: str, joints: Any = slice(None)) -> tuple[Any, Any]:
        """Return the cells of some joints of a robot, see `ViewSlice.joints`."""
        key = address, joints_key(joints)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = cells(self.slots, self.view_slice.joints(address, joints))
        return found

    def assign(self, array: Any, where: tuple[Any, Any], new: Any, kept: Any = None) -> None:
        """Write values `(slots, ...)`, the `rows` of a setter's, into cells of an array of the batch.

        Cells that are `kept`, bool like `new`, stay as they are.
        """
        if kept is not None:
            new = namespace_of(new).where(kept, array[where], new)
        if self.mask is None:
            array[where] = new
        elif all(isinstance(index, slice | int) for index in where):
            masked_assign(array[where], self.mask, new)
        else:
            array[where] = namespace_of(new).where(expand_mask(self.mask, new), new, array[where])


def joints_key(joints: Any) -> Hashable:
    """Return a key of a choice of joints, indices or a slice."""
    return joints.tobytes() if isinstance(joints, np.ndarray) else repr(joints)


def cells(rows: Index, columns: Index | int) -> tuple[Any, Any]:
    """Return the index of a rectangle of cells."""
    if isinstance(rows, slice) or isinstance(columns, slice | int | np.integer):
        return rows, columns
    return rows[:, None], columns


class _Readout:
    """Buffers of a quantity, which are filled again after every change of the world, and what others see of them."""

    def __init__(self, *buffers: Any):
        self.version = -1
        self.bound = False
        self.copies: list[tuple[Any, Index, Cells]] = []  # by buffer and slice
        self.computed: list[tuple[Index, Sequence[Cells], Callable[..., tuple[Any, ...]]]] = []  # by slice
        self.buffers = self.shown = buffers
        if isinstance(buffers[0], np.ndarray):  # tensors cannot be made read-only
            self.shown = tuple(buffer.view() for buffer in buffers)
            for buffer in self.shown:
                buffer.flags.writeable = False

    def bind(self, sources: Iterable[tuple[Index, Source]]) -> None:
        """Fill the buffers from these sources, with the envs of each, from now on."""
        self.bound = True
        for envs, source in sources:
            if source.compute is None:
                pairs = zip(self.buffers, source.cells, strict=False)
                self.copies += [(buffer, envs, each) for buffer, each in pairs]
            else:
                self.computed.append((envs, source.cells, source.compute))

    def unbind(self) -> None:
        """Drop the sources, which keep the batches that they are of."""
        self.bound = False
        self.copies, self.computed = [], []


class View:
    """Slices, readouts and write targets, which hold for one placement of the envs in batches."""

    def __init__(self, world: ViewContext, find: Callable[[CompiledScene], Any]):
        self._world = world
        self._find = find
        self._placement: bytes | None = None  # when the slices were found
        self._slices: list[ViewSlice] = []
        self._targets: dict[bytes, list[WriteTarget]] = {}  # by ids of envs
        self._readouts: dict[Hashable, _Readout] = {}

    def slices(self) -> list[ViewSlice]:
        """Return the slices of batches that hold the view's rows; recomputed after envs moved."""
        if self._placement != self._world.placement:
            self._targets.clear()
            for readout in self._readouts.values():
                readout.unbind()
            self._slices = []
            for env_batch in self._world.env_batches:
                # a batch's models have equal structure, names included: one layout serves all its envs
                layout = self._find(env_batch.scene)
                if layout is not None and env_batch.occupied is not None:
                    slots, envs = (self._world.upload(index) for index in env_batch.occupied)
                    arrays = self._world.batch_arrays(env_batch)
                    self._slices.append(ViewSlice(arrays, slots, envs, layout, self._world.upload))
        self._placement = self._world.placement  # the same object is compared faster
        return self._slices

    def close(self) -> None:
        """Drop the batches, whose memory robots that keep the view would keep, too."""
        self._slices = []
        self._targets.clear()
        self._readouts.clear()

    def _read(
        self,
        key: Hashable,
        shapes: tuple[tuple[int, ...], ...],
        find: Callable[[ViewSlice], Source],
        env_ids: EnvIds | None = None,
    ) -> Any:
        """Return buffers `(env_num, *shape)` of the quantity `key`, filled from every slice once per state version.

        `find` is called when the slices have changed. Of some envs `(m,)`, arrays `(m, *shape)` of the caller.
        """
        world, readout = self._world, self._readouts.get(key)
        if env_ids is not None:
            if world.arrays.on_device:
                return tuple(buffer[env_ids] for buffer in self._read(key, shapes, find))
            return self._read_rows(env_ids, shapes, find)
        if readout is None:
            buffers = (world.arrays.zeros((world.env_num, *shape)) for shape in shapes)
            readout = self._readouts[key] = _Readout(*buffers)
        if readout.version != world.version:
            if self._placement is not world.placement:
                self.slices()
            if not readout.bound:
                readout.bind((view_slice.envs, find(view_slice)) for view_slice in self._slices)
            for buffer, envs, (array, where) in readout.copies:
                buffer[envs] = array()[where]
            for envs, inputs, compute in readout.computed:
                values = compute(*[array()[where] for array, where in inputs])
                for buffer, value in zip(readout.buffers, values, strict=True):
                    buffer[envs] = value
            readout.version = world.version
        return readout.shown

    def _read_rows(
        self, env_ids: EnvIds, shapes: tuple[tuple[int, ...], ...], find: Callable[[ViewSlice], Source]
    ) -> tuple[Any, ...]:
        rows = tuple(self._world.arrays.zeros((len(env_ids), *shape)) for shape in shapes)
        for target in self._write_targets(env_ids):
            source = find(replace(target.view_slice, slots=target.slots))
            values = [array()[where] for array, where in source.cells]
            if source.compute is not None:
                values = source.compute(*values)
            for array, value in zip(rows, values, strict=False):
                array[target.rows] = value
        return rows

    def _write_targets(self, env_ids: EnvIds) -> list[WriteTarget]:
        """Return the targets of a setter's values for these envs.

        Envs that do not hold what the view shows (any more) are left out.
        """
        world = self._world
        if world.arrays.on_device and is_tensor(env_ids):
            mask = world.write_mask
            return [
                WriteTarget(part, part.batch, part.slots, part.envs, None if mask is None else mask[part.envs])
                for part in self.slices()
            ]
        if self._placement is not world.placement:
            self.slices()
        env_ids = np.asarray(env_ids, np.intp)
        key = env_ids.tobytes()
        targets = self._targets.get(key)
        if targets is None:
            if len(self._targets) >= _SELECTIONS_KEPT:
                self._targets.clear()
            targets = []
            for part in self._slices:
                own = world.batch_id[env_ids] == part.batch.id
                if own.any() or own.all():  # also of no envs
                    rows = slice(None) if own.all() else part.upload(np.flatnonzero(own))
                    targets.append(WriteTarget(part, part.batch, part.index(world.slot[env_ids[own]]), rows))
            self._targets[key] = targets
        return targets
