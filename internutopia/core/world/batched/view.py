"""Batched views of worlds of MuJoCo models: what those of robots, bodies and cameras share.

A view knows in which groups what it shows lives (its segments) and where in `qpos`, `ctrl`, ... Reading gathers the
columns of every segment into one `(env_num, ...)` float32 buffer, once per state version; writing scatters rows. Where
addresses are contiguous they are slices, so that the common case, one group with every env in order, copies blocks.

The same code serves numpy arrays and, in a `DeviceWorld`, torch tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.model.compiled import CompiledScene
from internutopia.core.model.spec import Probe
from internutopia.core.util.arrays import beside, blend, is_tensor, namespace_of
from internutopia.core.world.base import Array, DeviceWorld, EnvIds
from internutopia.core.world.batched.env_batch import BatchArrays, Index, as_index

if TYPE_CHECKING:
    from internutopia.core.world.batched.world import BatchedWorld


@dataclass(frozen=True)
class ViewSlice:
    """The envs of one group that hold what a view shows; `rows` are slots of the group, `envs` rows of the view."""

    group: BatchArrays
    rows: Index
    envs: Index
    layout: Any
    upload: Callable[[Index], Index]  # makes an index suit the arrays of the group
    _found: dict[Hashable, Index] = field(default_factory=dict)

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
        return self.once(('root', names), lambda: self.group.scene.model.body_rootid[self._bodies(names)])

    def once(self, key: Hashable, find: Callable[[], NDArray[np.intp]]) -> Index:
        """An index that is found by the first caller who names it so."""
        if key not in self._found:
            self._found[key] = self._index(find())
        return self._found[key]

    def _bodies(self, names: tuple[str, ...]) -> NDArray[np.intp]:
        return np.array([self.layout.bodies[name].body for name in names], np.intp)

    def _index(self, ids: NDArray[np.intp]) -> Index:
        return self.upload(as_index(ids))


@dataclass(frozen=True)
class WriteTarget:
    """Where a setter's values go in one group: its slots, and which rows of the values are for them."""

    segment: ViewSlice
    slots: Index
    mine: Index
    mask: Any = None  # `(slots,)`, those that are written; None for all

    @property
    def group(self) -> BatchArrays:
        """The group."""
        return self.segment.group

    def put(self, array: Any, columns: Any, values: Any, kept: Any = None) -> None:
        """Write values `(n, ...)` of all groups, as far as they are for this one, into columns of its array.

        Cells that are `kept`, bool like `values`, stay as they are.
        """
        new = values[self.mine]
        if kept is not None:
            new = namespace_of(new).where(kept[self.mine], array[cells(self.slots, columns)], new)
        self.put_own(array, columns, new)

    def put_own(self, array: Any, columns: Any, new: Any) -> None:
        """Write values `(slots, ...)` into columns of this group's array."""
        where = cells(self.slots, columns)
        if self.mask is None:
            array[where] = new
        elif all(isinstance(index, slice | int) for index in where):
            blend(self.mask, new, array[where])
        else:
            array[where] = namespace_of(new).where(beside(self.mask, new), new, array[where])


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
    """Segments and cached buffers."""

    def __init__(self, world: BatchedWorld, find: Callable[[CompiledScene], Any]):
        self._world = world
        self._find = find
        self._segments: list[ViewSlice] = []
        self._places = b''  # the world's layout when the segments were found
        self._last_rows: list[WriteTarget] = []
        self._rows_key = (b'', b'')
        self._buffers: dict[Hashable, _Buffers] = {}

    def segments(self) -> list[ViewSlice]:
        """Where the view's rows live; recomputed after envs moved."""
        if self._places != self._world.layout:
            self._places = self._world.layout
            self._segments = []
            for group in self._world.groups:
                # a group's models have equal structure, names included: one layout serves all its envs
                layout = self._find(group.scene)
                if layout is not None and group.occupied is not None:
                    rows, envs = (self._world.upload(index) for index in group.occupied)
                    self._segments.append(ViewSlice(self._world.side(group), rows, envs, layout, self._world.upload))
        return self._segments

    def _rows(self, env_ids: EnvIds) -> list[WriteTarget]:
        """Where a setter's values for these envs go.

        Envs that do not hold what the view shows (any more) are left out.
        """
        if isinstance(self._world, DeviceWorld) and is_tensor(env_ids):
            mask = self._world.mask
            return [
                WriteTarget(segment, segment.rows, segment.envs, None if mask is None else mask[segment.envs])
                for segment in self.segments()
            ]
        env_ids = np.asarray(env_ids, np.intp)
        key = self._world.layout, env_ids.tobytes()
        if key != self._rows_key:  # most callers ask for the same envs again and again
            self._rows_key, self._last_rows = key, list(self._find_rows(env_ids))
        return self._last_rows

    def _find_rows(self, env_ids: EnvIds) -> Iterator[WriteTarget]:
        groups = self._world.group_id[env_ids]
        for segment in self.segments():
            mine = groups == segment.group.id
            if mine.all():
                yield WriteTarget(segment, segment.upload(as_index(self._world.slot[env_ids])), slice(None))
            elif mine.any():
                slots = as_index(self._world.slot[env_ids[mine]])
                yield WriteTarget(segment, segment.upload(slots), segment.upload(np.flatnonzero(mine)))

    def _cached(
        self, key: Hashable, shapes: tuple[tuple[int, ...], ...], fill: Callable[[ViewSlice, tuple[Array, ...]], None]
    ) -> Any:
        """Buffers `(env_num, *shape)` for `key`, filled from every segment once per state version."""
        buffers = self._buffers.get(key)
        if buffers is None:
            n, arrays = self._world.env_num, self._world.arrays
            buffers = self._buffers[key] = _Buffers(*(arrays.zeros((n, *shape)) for shape in shapes))
        if buffers.version != self._world.version:
            for segment in self.segments():
                fill(segment, buffers.arrays)
            buffers.version = self._world.version
        return buffers.shown

    def _changed(self, place: WriteTarget) -> None:
        place.group.touched(place.slots)
        self._world.version += 1
