"""View base of worlds of MuJoCo models: what the batched views of robots, bodies and cameras share.

A view knows in which env batches what it shows lives (its slices) and where in `qpos`, `ctrl`, ... Reading gathers the
columns of every slice into one `(env_num, ...)` float32 buffer, once per state version; writing scatters rows. Where
addresses are evenly spaced they are Python slices, so that the common case, one batch with every env in order, copies
blocks. Of its world a view sees `ViewContext` only.

The same code serves numpy arrays and, in a `DeviceWorld`, torch tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.batched.env_batch import BatchArrays, EnvBatch, Index, as_index
from internutopia.engines.views import Array, EnvIds
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import Probe
from internutopia.rendering.camera import Quality, RenderRequest
from internutopia.util.arrays import ArrayMaker, expand_mask, is_tensor, masked_assign, namespace_of

T = TypeVar('T')


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

    def render(self, requests: Sequence[RenderRequest], quality: Quality | None = None) -> None:
        """Render pictures of envs."""
        ...


@dataclass(frozen=True)
class ViewSlice:
    """The envs of one batch that hold what a view shows: their `slots` in the batch, and `envs`, rows of the view."""

    batch: BatchArrays
    slots: Index
    envs: Index
    layout: Any
    upload: Callable[[Index], Index]  # makes an index suit the arrays of the batch
    _found: dict[Hashable, Any] = field(default_factory=dict)

    @cached_property
    def columns(self) -> dict[str, Index]:
        """Addresses of a robot's joints in `qpos` and among the dofs, and of its own actuators in `ctrl`."""
        return {address: self._index(getattr(self.layout, address)) for address in ('qpos', 'dof', 'controls')}

    def probe(self, probe: Probe) -> Index:
        """Addresses in `sensordata` of what a probe measures."""
        return self.once(probe, lambda: self.layout.probes[probe])

    def joints(self, address: str, joints: Any) -> Index:
        """Addresses of some joints in `qpos` or among the dofs."""
        return self.once((address, joints_key(joints)), lambda: getattr(self.layout, address)[joints])

    def targets(self, kind: str, joints: Any) -> Index:
        """Addresses in `ctrl` of the actuators of some joints that take targets of a kind."""
        return self.once((kind, joints_key(joints)), lambda: self.layout.targets[kind][joints])

    def links(self, names: tuple[str, ...]) -> Index:
        """The model's bodies that are links of a robot."""
        return self.once(names, lambda: self._bodies(names))

    def roots(self, names: tuple[str, ...]) -> Index:
        """The bodies at the roots of the trees that links belong to."""
        return self.once(('root', names), lambda: self.batch.scene.model.body_rootid[self._bodies(names)])

    def once(self, key: Hashable, find: Callable[[], NDArray[np.intp]]) -> Index:
        """An index that is found by the first caller who names it so."""
        return self.made_once(key, lambda: self._index(find()))

    def made_once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Something that is made by the first caller who names it so."""
        if key not in self._found:
            self._found[key] = make()
        return self._found[key]

    def _bodies(self, names: tuple[str, ...]) -> NDArray[np.intp]:
        return np.array([self.layout.bodies[name].body for name in names], np.intp)

    def _index(self, ids: NDArray[np.intp]) -> Index:
        return self.upload(as_index(ids))


@dataclass(frozen=True)
class WriteTarget:
    """Where a setter's values go in one batch: its slots, and which rows of the values are for them."""

    view_slice: ViewSlice
    slots: Index
    value_rows: Index
    mask: Any = None  # `(slots,)`, those that are written; None for all
    _found: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def batch(self) -> BatchArrays:
        """The batch that holds the slots."""
        return self.view_slice.batch

    def target_cells(self, kind: str, joints: Any) -> tuple[Any, Any]:
        """Cells in `ctrl` of the actuators of some joints that take targets of a kind: looked up once."""
        key = kind, joints_key(joints)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = cells(self.slots, self.view_slice.targets(kind, joints))
        return found

    def assign(self, array: Any, columns: Any, values: Any, kept: Any = None) -> None:
        """Write values `(n, ...)` of all batches, as far as they are for this one, into columns of its array.

        Cells that are `kept`, bool like `values`, stay as they are.
        """
        new = values[self.value_rows]
        if kept is not None:
            new = namespace_of(new).where(kept[self.value_rows], array[cells(self.slots, columns)], new)
        self.assign_own(array, columns, new)

    def assign_own(self, array: Any, columns: Any, new: Any) -> None:
        """Write values `(slots, ...)` into columns of this batch's array."""
        where = cells(self.slots, columns)
        if self.mask is None:
            array[where] = new
        elif all(isinstance(index, slice | int) for index in where):
            masked_assign(array[where], self.mask, new)
        else:
            array[where] = namespace_of(new).where(expand_mask(self.mask, new), new, array[where])


def joints_key(joints: Any) -> Hashable:
    """Names a choice of joints, indices or a slice."""
    return joints.tobytes() if isinstance(joints, np.ndarray) else repr(joints)


def cells(rows: Index, columns: Index | int) -> tuple[Any, Any]:
    """Index of a rectangle of cells."""
    if isinstance(rows, slice) or isinstance(columns, slice | int | np.integer):
        return rows, columns
    return rows[:, None], columns


class _Buffers:
    """Arrays that are filled again after every change of the world, and what others see of them."""

    def __init__(self, *arrays: Any):
        self.version = -1
        self.arrays = self.shown = arrays
        if isinstance(arrays[0], np.ndarray):  # tensors cannot be made read-only
            self.shown = tuple(array.view() for array in arrays)
            for array in self.shown:
                array.flags.writeable = False


class View:
    """Slices and cached buffers."""

    def __init__(self, world: ViewContext, find: Callable[[CompiledScene], Any]):
        self._world = world
        self._find = find
        self._slices: list[ViewSlice] = []
        self._placement = b''  # of the envs when the slices were found
        self._last_targets: list[WriteTarget] = []
        self._targets_key = (b'', b'')
        self._buffers: dict[Hashable, _Buffers] = {}

    def slices(self) -> list[ViewSlice]:
        """Return the slices of batches that hold the view's rows; recomputed after envs moved."""
        if self._placement != self._world.placement:
            self._placement = self._world.placement
            self._slices = []
            for env_batch in self._world.env_batches:
                # a batch's models have equal structure, names included: one layout serves all its envs
                layout = self._find(env_batch.scene)
                if layout is not None and env_batch.occupied is not None:
                    slots, envs = (self._world.upload(index) for index in env_batch.occupied)
                    arrays = self._world.batch_arrays(env_batch)
                    self._slices.append(ViewSlice(arrays, slots, envs, layout, self._world.upload))
        return self._slices

    def close(self) -> None:
        """Let go of the batches: robots that keep the view must not keep their memory."""
        self._slices = []
        self._last_targets = []
        self._buffers.clear()

    def _write_targets(self, env_ids: EnvIds) -> list[WriteTarget]:
        """Return the targets of a setter's values for these envs.

        Envs that do not hold what the view shows (any more) are left out.
        """
        if self._world.arrays.on_device and is_tensor(env_ids):
            mask = self._world.write_mask
            return [
                WriteTarget(part, part.slots, part.envs, None if mask is None else mask[part.envs])
                for part in self.slices()
            ]
        env_ids = np.asarray(env_ids, np.intp)
        key = self._world.placement, env_ids.tobytes()
        if key != self._targets_key:  # most callers ask for the same envs again and again
            self._targets_key, self._last_targets = key, list(self._find_targets(env_ids))
        return self._last_targets

    def _find_targets(self, env_ids: EnvIds) -> Iterator[WriteTarget]:
        batch_ids = self._world.batch_id[env_ids]
        for view_slice in self.slices():
            own = batch_ids == view_slice.batch.id
            if own.all():
                yield WriteTarget(view_slice, view_slice.upload(as_index(self._world.slot[env_ids])), slice(None))
            elif own.any():
                slots = as_index(self._world.slot[env_ids[own]])
                yield WriteTarget(view_slice, view_slice.upload(slots), view_slice.upload(np.flatnonzero(own)))

    def _cached(
        self, key: Hashable, shapes: tuple[tuple[int, ...], ...], fill: Callable[[ViewSlice, tuple[Array, ...]], None]
    ) -> Any:
        """Buffers `(env_num, *shape)` for `key`, filled from every slice once per state version."""
        buffers = self._buffers.get(key)
        if buffers is None:
            n, arrays = self._world.env_num, self._world.arrays
            buffers = self._buffers[key] = _Buffers(*(arrays.zeros((n, *shape)) for shape in shapes))
        if buffers.version != self._world.version:
            for view_slice in self.slices():
                fill(view_slice, buffers.arrays)
            buffers.version = self._world.version
        return buffers.shown

    def _mark_dirty(self, target: WriteTarget) -> None:
        target.batch.mark_dirty(target.slots)
        self._world.version += 1
