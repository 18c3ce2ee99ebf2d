"""Env batch: envs that are stepped together, whose models have the same structure and differ in float fields at most.

It hands out slots (rows of its arrays) to envs and grows when it runs out. What differs between the models of its
envs, and what is changed per env at run time (gains, masses), lives in per-slot values of model fields; a field costs
nothing until the first env differs in it. `mujoco/env_batch.py` and `warp/env_batch.py` step it.

Flags of a scene, arrays of a state, say what may change in it without another file: self-collisions of its robots,
and which joints are broken.
"""

from __future__ import annotations

import heapq
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.base import PhysicsState
from internutopia.model.compiled import CompiledScene

Slots = NDArray[np.int32]
Index = slice | NDArray[np.intp]
Arrays = dict[str, NDArray[Any]]
Geoms = NDArray[np.bool_]  # of a model, `(ngeom,)`

_IDS = itertools.count()
FIELD = 'model/'
"""Prefix of model fields among the arrays of a state."""
_LAST_GROUP = mujoco.mjNGROUP - 1  # geoms of a higher group count as of this one


@dataclass(frozen=True)
class Sight:
    """Visibility of geoms to rays in the models of a batch.

    Attributes:
        groups: of the geoms that are seen.
        through: bodies that rays pass through.
    """

    groups: tuple[int, ...]
    through: tuple[int, ...]

    def seen(self, model: mujoco.MjModel) -> Geoms:
        """Return the geoms that stop rays."""
        groups = np.clip(model.geom_group, 0, _LAST_GROUP)
        return np.isin(groups, self.groups) & ~np.isin(model.geom_bodyid, self.through)


class BatchArrays(ABC):
    """The arrays of a batch that views read and write: numpy's, or tensors on a device."""

    id: int  # of the batch
    scene: CompiledScene  # whose layout all envs of the batch have

    @abstractmethod
    def efforts(self) -> Any:
        """Return forces of actuators on dofs in the last substep, after clamping, `(capacity, nv)`."""

    @abstractmethod
    def sensors(self) -> Any:
        """Return sensor values of the last substep, `(capacity, nsensordata)`."""

    @abstractmethod
    def measured(self) -> Any:
        """Return `sensors`, in which probes hold their values at the first instant until a substep was made."""

    @abstractmethod
    def ids(self, slots: Index) -> NDArray[np.intp]:
        """Return slots as an array of numbers."""

    @abstractmethod
    def read(self, name: str) -> Any:
        """Return the current `(capacity, ...)` array of a state field, or of poses or velocities of bodies."""

    @abstractmethod
    def write(self, name: str) -> Any:
        """Return the live `(capacity, ...)` array of a state field, to be written to before any other call."""

    @abstractmethod
    def mark_dirty(self, slots: Index) -> None:
        """Mark slots whose positions or velocities were written: derived fields must follow when read next."""

    @abstractmethod
    def expand(self, name: str) -> Any:
        """Return the per-slot values `(capacity, ...)` of an `MjModel` field, to be written before any other call."""

    @abstractmethod
    def values(self, name: str) -> Any:
        """Return the `(capacity, ...)` values of an `MjModel` field, not to be written to."""

    @abstractmethod
    def set_constants(self, slots: Index, mask: Any = None) -> None:
        """Recompute what follows from masses and inertias that were changed per slot.

        `mask` selects some of the slots, bool like them; None: all.
        """

    @abstractmethod
    def cast(self, slots: Index, origins: Any, directions: Any, sight: Sight) -> Any:
        """Return the distances [m] along rays, `(n, rays)`, infinite for a miss, of the kind of `directions`.

        Args:
            slots: n slots.
            origins: `(n, rays or 1, 3)` [m], env frame.
            directions: `(n, rays, 3)`, unit vectors.
            sight: what is seen.
        """


class EnvBatch(BatchArrays):
    """`capacity` slots for envs of one model structure."""

    fields: ClassVar[frozenset[str]]  # of `MjModel`, that can have per-slot values
    structure: bytes  # key of the models that can share the batch

    def __init__(self, scene: CompiledScene, capacity: int):
        self.id = next(_IDS)
        self.scene = scene
        self.envs: NDArray[np.intp] = np.full(capacity, -1, np.intp)  # env in each slot, -1: free
        self.used = 0  # slots
        self._free = list(range(capacity))  # slots without an env, a heap: the first one is taken first
        probes = [address for robot in scene.robots.values() for address in robot.probes.values()]
        self.probed = np.unique(np.concatenate(probes)) if probes else np.zeros(0, np.intp)  # columns of `sensors`
        self._unmeasured = np.zeros(capacity, bool)  # slots that have made no substep yet
        self._occupied: tuple[Index, Index] | None = None
        self._expanded: set[str] = set()  # model fields with per-slot values
        self.model_version = 0  # grows whenever these may have changed
        self._differing: WeakKeyDictionary[CompiledScene, list[str]] = WeakKeyDictionary({scene: []})
        self._model_states: dict[int, tuple[CompiledScene, PhysicsState]] = {}  # by slot, while fields are as they were
        self._fields_then: Arrays = {}
        self._version_then = 0

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

    @override
    def ids(self, slots: Index) -> NDArray[np.intp]:
        return np.arange(*slots.indices(self.capacity)) if isinstance(slots, slice) else slots

    def reserve(self, count: int, limit: int) -> None:
        """Make room for `count` more envs, of `limit` that can ever be needed."""
        if count > len(self._free):
            capacity = min(limit, self._grown(self.used + count))
            self._resize(capacity)
            more = capacity - self.capacity
            self._free.extend(range(self.capacity, capacity))  # still a heap: all others come before
            self.envs = np.append(self.envs, np.full(more, -1, np.intp))
            self._unmeasured = np.append(self._unmeasured, np.zeros(more, bool))

    def add(self, env_id: int, scene: CompiledScene, state: Mapping[str, NDArray[Any]]) -> int:
        """Start an env in a free slot (`reserve` first) with the given state fields; returns the slot."""
        slot = heapq.heappop(self._free)
        self.envs[slot] = env_id
        self.used += 1
        self._occupied = None
        self._reset(slot, state)
        self._write_model(slot, scene)
        self._unmeasured[slot] = True
        return slot

    def remove(self, slots: NDArray[np.intp]) -> None:
        """Free slots."""
        self.envs[slots] = -1
        self.used -= len(slots)
        self._occupied = None
        self._unmeasured[slots] = False
        for slot in slots.tolist():
            heapq.heappush(self._free, slot)

    def get_state(self, slot: int, scene: CompiledScene) -> Arrays:
        """Return a slot's state, its last measurements, and where its model is not that of its scene (any more)."""
        rows = self.get_states(slice(slot, slot + 1))
        return {name: np.array(row[0]) for name, row in rows.items()} | self.changed_fields(slot, scene)

    def get_states(self, slots: slice | Slots) -> Arrays:
        """Return the part of the state of slots that each step changes, `(m, ...)`; live arrays where possible."""
        return {**self._get_engine_states(slots), 'fresh': self._unmeasured[slots]}

    def changed_fields(self, slot: int, scene: CompiledScene) -> Arrays:
        """Return the model fields of a slot that differ from those of its scene, under their names in states."""
        return {
            f'{FIELD}{name}': row.copy()
            for name in sorted(self._expanded)
            if not np.array_equal(row := self.values(name)[slot], self._field_of(scene, name), equal_nan=True)
        }

    def model_states(
        self,
        slots: NDArray[np.integer],
        scenes: Sequence[CompiledScene],
        make: Callable[[EnvBatch, int, CompiledScene], PhysicsState],
    ) -> list[PhysicsState]:
        """Return what seldom changes of the states of slots, which run `scenes`, as `make` returns it.

        The objects are the same as long as nothing changes: to compare all models after each step would cost more than
        the step of a small robot.
        """
        self._drop_changed_models()
        states: list[PhysicsState] = []
        for slot, scene in zip(slots.tolist(), scenes, strict=True):
            kept = self._model_states.get(slot)
            if kept is None or kept[0] is not scene:
                kept = self._model_states[slot] = scene, make(self, slot, scene)
            states.append(kept[1])
        return states

    def _drop_changed_models(self) -> None:
        """Drop the model states of slots whose fields have changed; all slots are compared at once."""
        if self.model_version == self._version_then:
            return
        self._version_then = self.model_version
        before, self._fields_then = self._fields_then, {name: self.values(name).copy() for name in self._expanded}
        for name, rows in self._fields_then.items():
            if name not in before or before[name].shape != rows.shape:
                self._model_states.clear()
                return
            changed = (before[name] != rows).reshape(len(rows), -1).any(axis=1)
            for slot in np.flatnonzero(changed).tolist():
                self._model_states.pop(slot, None)

    def layout(self, state: Mapping[str, NDArray[Any]]) -> Arrays:
        """Return arrays of the shapes and types that those of a state must have, for the model fields in it."""
        fields = self.fields.intersection(name.removeprefix(FIELD) for name in state if name.startswith(FIELD))
        own = {f'{FIELD}{name}': self.values(name)[0] for name in fields}
        engine = {name: rows[0] for name, rows in self._get_engine_states(slice(0, 1)).items()}
        return {**engine, 'fresh': np.array(False), **own}

    def set_state(self, slot: int, scene: CompiledScene, state: Mapping[str, NDArray[Any]]) -> None:
        """Give a slot a state that `get_state` returned."""
        self._set_engine_state(slot, state)
        self._write_model(slot, scene)
        for name, row in state.items():
            if name.startswith(FIELD):
                self.expand(name.removeprefix(FIELD))[slot] = row
        self._unmeasured[slot] = state['fresh']

    @override
    def cast(self, slots: Index, origins: Any, directions: Any, sight: Sight) -> NDArray[np.float64]:
        ids = self.ids(slots)
        order = np.argsort(ids)  # `ray` needs them in order
        distances = np.empty(directions.shape[:-1])
        distances[order] = self.ray(ids[order], origins[order], directions[order], sight.seen(self.scene.model))
        return distances

    @abstractmethod
    def ray(
        self,
        slots: NDArray[np.intp],
        origins: NDArray[np.float64],
        directions: NDArray[np.float64],
        seen: Geoms,
    ) -> NDArray[np.float64]:
        """Return the distances [m] along rays, `(n, rays)`, infinite for a miss.

        Args:
            slots: n slots, ascending.
            origins: `(n, rays or 1, 3)` [m], env frame.
            directions: `(n, rays, 3)`, unit vectors.
            seen: the geoms that stop rays.
        """

    @abstractmethod
    def step(self, slots: Slots | None, substeps: int) -> dict[int, str]:
        """Advance slots (None: all); returns {env id: reason} for those that failed."""

    @abstractmethod
    def full_state(self, slot: int) -> NDArray[np.float64]:
        """Return the state of a slot as MuJoCo has it, `mjSTATE_INTEGRATION`."""

    @abstractmethod
    def model(self, slot: int, scene: CompiledScene) -> mujoco.MjModel:
        """Return a copy of the model of a slot, which runs `scene`, with everything that was changed there."""

    @abstractmethod
    def data(self, slot: int) -> mujoco.MjData:
        """Return a snapshot of the state of a slot; what follows from it is not computed."""

    def _grown(self, needed: int) -> int:
        """Return a larger capacity, of at least `needed` slots: growing costs time once, free slots in each step."""
        return max(needed, 2 * self.capacity)

    @abstractmethod
    def _resize(self, capacity: int) -> None:
        """Move to a larger batch; every env keeps its slot and its state bit for bit."""

    @abstractmethod
    def _reset(self, slot: int, state: Mapping[str, NDArray[Any]]) -> None:
        """Give a slot the defaults of the model, some state fields excepted, and no measurements."""

    @abstractmethod
    def _get_engine_states(self, slots: slice | Slots) -> Arrays:
        """Return the state of slots, `(m, ...)`, without their models; the names are the engine's own."""

    @abstractmethod
    def _set_engine_state(self, slot: int, state: Mapping[str, NDArray[Any]]) -> None:
        """Give a slot a row of what `_get_engine_states` returned."""

    @abstractmethod
    def _field_of(self, scene: CompiledScene, name: str) -> NDArray[Any]:
        """Return the value of a model field in a slot that runs a scene."""

    def _write_model(self, slot: int, scene: CompiledScene) -> None:
        """Give a slot the float fields of its scene's model, undoing what was changed there before."""
        if scene not in self._differing:
            self._differing[scene] = [
                name
                for name in sorted(self.fields)
                if not np.array_equal(self._field_of(self.scene, name), self._field_of(scene, name), equal_nan=True)
            ]
        for name in (*self._differing[scene], *self._expanded):
            self.expand(name)[slot] = self._field_of(scene, name)


def as_index(ids: NDArray[np.intp]) -> Index:
    """Return the same index as a slice where ids are evenly spaced: numpy copies blocks much faster than rows."""
    if len(ids):
        step = int(ids[1] - ids[0]) if len(ids) > 1 else 1
        if step > 0 and (np.diff(ids) == step).all():
            return slice(int(ids[0]), int(ids[-1]) + 1, step)
    return ids


def slots_by_batch(env_batches: Sequence[EnvBatch], env_ids: NDArray[np.intp]) -> list[tuple[EnvBatch, Slots | None]]:
    """Return the batches that hold these envs, with their slots; None for all slots."""
    slots: list[tuple[EnvBatch, Slots | None]] = []
    for env_batch in env_batches:
        chosen = np.isin(env_batch.envs, env_ids)
        if chosen.all():
            slots.append((env_batch, None))
        elif chosen.any():
            slots.append((env_batch, np.flatnonzero(chosen).astype(np.int32)))
    return slots


_COLLISIONS, _BROKEN = 'self collisions', 'broken joints'
_VALUES = None, True, False  # of self-collisions: a number of each in states


def scene_flags(scene: CompiledScene) -> dict[str, NDArray[np.int8]]:
    """Return the flags of a scene, `(robots,)` and, if it has joints of a script, `(joints,)`."""
    collisions = [_VALUES.index(robot.self_collisions) for robot in scene.source.robots]
    flags = {_COLLISIONS: np.array(collisions, np.int8)}
    if scene.source.joints:
        flags[_BROKEN] = np.array([joint.broken for joint in scene.source.joints], np.int8)
    return flags


def flag_fault(state: PhysicsState) -> str | None:
    """Return the fault of a state whose self-collisions are no flags; None if they are."""
    flags = state.arrays[_COLLISIONS].tolist()
    if all(0 <= flag < len(_VALUES) for flag in flags):
        return None
    return f'its {_COLLISIONS} are {flags}, not 0 to {len(_VALUES) - 1}'


def read_flags(scene: CompiledScene, state: PhysicsState) -> tuple[dict[str, bool | None], list[bool]]:
    """Return the self-collisions by robot, and which joints are broken, in a state of a scene."""
    collisions = [_VALUES[flag] for flag in state.arrays[_COLLISIONS].tolist()]
    broken = state.arrays.get(_BROKEN, np.zeros(0, np.int8)).astype(bool).tolist()
    return dict(zip(scene.robot_names, collisions, strict=True)), broken


def model_state(env_batch: EnvBatch, slot: int, scene: CompiledScene) -> PhysicsState:
    """Return the part of the state of a slot that seldom changes; the slot runs a scene."""
    return PhysicsState(scene.digest, {**env_batch.changed_fields(slot, scene), **scene_flags(scene)})
