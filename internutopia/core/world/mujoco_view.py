"""Batched views of worlds of MuJoCo models: what those of robots, bodies and cameras share.

A view knows in which groups what it shows lives (its segments) and where in `qpos`, `ctrl`, ... Reading gathers the
columns of every segment into one `(env_num, ...)` float32 buffer, once per state version; writing scatters rows. Where
addresses are contiguous they are slices, so that the common case, one group with every env in order, copies blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.compiled import CompiledScene
from internutopia.core.scene.model import Probe
from internutopia.core.world.base import Array, EnvIds
from internutopia.core.world.group import Group, Index, as_index

if TYPE_CHECKING:
    from internutopia.core.world.grouped import GroupedWorld


@dataclass(frozen=True)
class Segment:
    """The envs of one group that hold what a view shows; `rows` are slots of the group, `envs` rows of the view."""

    group: Group
    rows: Index
    envs: Index
    layout: Any
    _found: dict[Hashable, Index] = field(default_factory=dict)

    @cached_property
    def columns(self) -> dict[str, Index]:
        """Addresses of a robot's joints in `qpos` and among the dofs, and of its own actuators in `ctrl`."""
        return {address: as_index(getattr(self.layout, address)) for address in ('qpos', 'dof', 'controls')}

    def probe(self, probe: Probe) -> Index:
        """Addresses in `sensordata` of what a probe measures."""
        return as_index(self.layout.probes[probe])

    def targets(self, kind: str, joints: Any) -> Index:
        """Addresses in `ctrl` of the actuators of some joints that take targets of a kind."""
        key = kind, joints.tobytes() if isinstance(joints, np.ndarray) else repr(joints)
        return self._once(key, lambda: self.layout.targets[kind][joints])

    def links(self, names: tuple[str, ...]) -> Index:
        """The model's bodies that are links of a robot."""
        return self._once(names, lambda: np.array([self.layout.bodies[name].body for name in names], np.intp))

    def _once(self, key: Hashable, find: Callable[[], NDArray[np.intp]]) -> Index:
        if key not in self._found:
            self._found[key] = as_index(find())
        return self._found[key]


def cells(rows: Index, columns: Index) -> tuple[Any, Any]:
    """Index of a rectangle of cells."""
    if isinstance(rows, slice) or isinstance(columns, slice):
        return rows, columns
    return rows[:, None], columns


class _Buffers:
    """Arrays `(env_num, *shape)` that are filled again after every change of the world, and what others see of them."""

    def __init__(self, env_num: int, shapes: tuple[tuple[int, ...], ...]):
        self.version = -1
        self.arrays = tuple(np.zeros((env_num, *shape), np.float32) for shape in shapes)
        self.shown = tuple(array.view() for array in self.arrays)
        for array in self.shown:
            array.flags.writeable = False


class View:
    """Segments and cached buffers."""

    def __init__(self, world: GroupedWorld, find: Callable[[CompiledScene], Any]):
        self._world = world
        self._find = find
        self._segments: list[Segment] = []
        self._places = b''  # the world's layout when the segments were found
        self._last_rows: list[tuple[Segment, Index, Index]] = []
        self._rows_key = (b'', b'')
        self._buffers: dict[Hashable, _Buffers] = {}

    def segments(self) -> list[Segment]:
        """Where the view's rows live; recomputed after envs moved."""
        if self._places != self._world.layout:
            self._places = self._world.layout
            self._segments = []
            for group in self._world.groups:
                # a group's models have equal structure, names included: one layout serves all its envs
                layout = self._find(group.scene)
                if layout is not None and group.occupied is not None:
                    self._segments.append(Segment(group, *group.occupied, layout))
        return self._segments

    def _rows(self, env_ids: EnvIds) -> list[tuple[Segment, Index, Index]]:
        """For each segment that holds some of the envs: its slots and which rows of the caller's values they are.

        Envs that do not hold what the view shows (any more) are left out.
        """
        env_ids = np.asarray(env_ids, np.intp)
        key = self._world.layout, env_ids.tobytes()
        if key != self._rows_key:  # most callers ask for the same envs again and again
            self._rows_key, self._last_rows = key, list(self._find_rows(env_ids))
        return self._last_rows

    def _find_rows(self, env_ids: EnvIds) -> Iterator[tuple[Segment, Index, Index]]:
        groups = self._world.group_id[env_ids]
        for segment in self.segments():
            mine = groups == segment.group.id
            if mine.all():
                yield segment, as_index(self._world.slot[env_ids]), slice(None)
            elif mine.any():
                yield segment, as_index(self._world.slot[env_ids[mine]]), np.flatnonzero(mine)

    def _cached(
        self, key: Hashable, shapes: tuple[tuple[int, ...], ...], fill: Callable[[Segment, tuple[Array, ...]], None]
    ) -> Any:
        """Buffers `(env_num, *shape)` for `key`, filled from every segment once per state version."""
        buffers = self._buffers.get(key)
        if buffers is None:
            buffers = self._buffers[key] = _Buffers(self._world.env_num, shapes)
        if buffers.version != self._world.version:
            for segment in self.segments():
                fill(segment, buffers.arrays)
            buffers.version = self._world.version
        return buffers.shown

    def _changed(self, group: Group, slots: Index) -> None:
        group.touched(slots)
        self._world.version += 1
