"""PhysX runtime: the one module that calls `ovphysx` and `ovstage`, which are pre-release.

They are imported with the first `PhysxStage`: then the process is put on the CPU, and PhysX's own threads are left out,
as stages are stepped on threads of ours.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import Columns, ContactForces, ContactPoints, Floats, TensorAccess, strongest

_NAMES = itertools.count()
_HEADER = (
    '#usda 1.0\n(\n    defaultPrim = "World"\n    metersPerUnit = 1\n    kilogramsPerUnit = 1\n    upAxis = "Z"\n)\n'
)


# A cache on disk of cooked colliders, kept for the process alone; a thread of it polls 8,000 times a second
_NO_COOKING_CACHE = {'/physics/cooking/ujitsoCollisionCooking': False, '/UJITSO/enabled': False}
SYSTEM_LIBRARIES = {'libGL.so.1': 'libgl1', 'libX11.so.6': 'libx11-6'}
"""Shared libraries that `ovstage` is linked with, which servers may lack, and the Debian packages that bring them."""

_first: list[tuple[int, str, Any]] = []  # the process that PhysX was started in, its device, an instance forever
_stages: set[PhysxStage] = set()  # those that are open: a fork may not destroy them


def _start(device: str) -> None:
    """Set up PhysX in this process, once. RuntimeError in a fork of a process that did, or if it cannot use the device.

    An instance lives as long as the process, since settings are lost with the last one: where the first one is on the
    CPU, all are. Errors of PhysX are logged by the logger `ovphysx`.
    """
    if _first and _first[0][0] != os.getpid():
        raise RuntimeError(
            "backend 'physx' does not survive a fork: PhysX had been started when this process was forked; start "
            "processes by 'spawn' (Gymnasium's AsyncVectorEnv: context='spawn')"
        )
    if _first:
        if device != 'cpu' and _first[0][1] == 'cpu':
            raise RuntimeError(
                f'SimConfig.device={device!r}: PhysX was started on the CPU in this process, and stays there; '
                'use another process, or start with the envs on the GPU'
            )
        return
    _load_usd()
    _load_physx()
    import ovphysx
    import ovstage
    import warp as wp
    from ovphysx import GlobalConfigKey, LogLevel, PhysX, PhysXConfig, api, set_global_config
    from ovphysx.samples.python_samples.schema_support import physx_schema_paths

    if device == 'cpu':
        PhysX.set_cpu_mode(True)
    set_global_config(GlobalConfigKey.NUM_THREADS, 0)
    paths = [*map(str, physx_schema_paths()), str(ovphysx.newton_schema_root())]
    ovstage.population.register_usd_schemas(paths)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)  # of all of `config`; these have no other way
        physx = PhysX(config=PhysXConfig(carbonite_overrides=_NO_COOKING_CACHE))
    ovphysx.enable_python_logging(min_severity=LogLevel.ERROR)
    set_global_config(GlobalConfigKey.DEFAULT_LOG_OUTPUT, False)
    wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)  # else it prints which devices it found
    api._CPU_MODE_WARP_BUILD_CHECKED = True  # else there is a warning that Warp looks for CUDA
    _first.append((os.getpid(), device, physx))
    os.register_at_fork(after_in_child=_leave_to_parent)


def _leave_to_parent() -> None:
    """Keep a fork from closing its parent's PhysX when it exits, which crashes."""
    from ovphysx import api

    atexit.unregister(api._destroy_process_instances_at_exit)


def _load_physx() -> None:
    """Import PhysX. ImportError that names the libraries of the system that are missing."""
    try:
        import ovphysx  # noqa: F401
        import ovstage  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:  # which hides the reason
        missing = {library: package for library, package in SYSTEM_LIBRARIES.items() if not _can_load(library)}
        if not missing:
            raise
        raise ImportError(
            f"backend 'physx': the system lacks {', '.join(missing)}, which PhysX's USD needs; "
            f'on Debian: apt-get install {" ".join(missing.values())}'
        ) from error


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _load_usd() -> None:
    """Let the importers' OpenUSD fill its registry first: once that of `ovstage` is imported, it would crash."""
    from pxr import Usd, UsdGeom, UsdLux, UsdPhysics, UsdShade

    Usd.SchemaRegistry()
    stage = Usd.Stage.CreateInMemory()
    for prim in (UsdGeom.Xform, UsdLux.SphereLight, UsdPhysics.Scene, UsdShade.Material):
        prim.Define(stage, '/prim')


class BoundColumns(Columns):
    """One quantity of `count` things of a stage, `(slots, count, ...)`, float32; rows are in the order of the paths.

    Args:
        binding: of the quantity, over all things.
        rows: the row of the binding for each slot and thing, `(slots, count)`.
    """

    def __init__(self, binding: Any, rows: NDArray[np.intp]):
        self._binding = binding
        self._in_order = bool((rows.ravel() == np.arange(rows.size)).all())
        self.shape = (*rows.shape, *binding.shape[1:])

    @override
    def names(self) -> tuple[str, ...]:
        return tuple(self._binding.dof_names)

    @override
    def links(self) -> tuple[str, ...]:
        return tuple(self._binding.body_names)

    def close(self) -> None:
        """Let go of PhysX."""
        self._binding.destroy()


class PhysxColumns(BoundColumns):
    """Columns on the host."""

    def __init__(self, binding: Any, rows: NDArray[np.intp]):
        super().__init__(binding, rows)
        self._rows = rows
        self._buffer = np.zeros(binding.shape, np.float32)
        self.values = np.zeros(self.shape, np.float32)

    @override
    def read(self) -> Floats:
        self._binding.read(self._buffer)
        rows = self._buffer.reshape(self.shape) if self._in_order else self._buffer[self._rows]
        self.values[...] = rows
        return self.values

    @override
    def write(self, slots: NDArray[np.intp] | None = None) -> None:
        self._buffer[self._rows] = self.values
        if slots is None or len(slots) == len(self._rows):
            self._binding.write(self._buffer)
        elif len(slots):
            self._binding.write(self._buffer, indices=np.ascontiguousarray(self._rows[slots].ravel(), np.int32))


class PhysxContactForces(ContactForces):
    """Net contact forces [N] on `count` colliders of each slot, `(slots, count, 3)`, axes of the env.

    Args:
        physx: what simulates them.
        query: selects them.
        paths: of the colliders, of all slots.
        shape: `(slots, count)`.
        kinds: attributes, whose sum is the force; of more than three numbers, forces with several others are added up.
    """

    def __init__(self, physx: Any, query: Any, paths: Sequence[str], shape: tuple[int, int], kinds: Sequence[str]):
        self._physx, self._query, self._kinds = physx, query, list(kinds)
        self._paths, self._shape = paths, shape
        self._places: list[NDArray[np.intp]] = []  # of the rows of each group that PhysX returns

    @override
    def read(self) -> Floats:
        forces = np.zeros((len(self._paths) + 1, 3), np.float32)  # the last one is of colliders that were not selected
        with self._physx.read(self._query, self._kinds).wait() as result:
            index = 0
            while (group := result.fetch_next().wait()) is not None:
                if index == len(self._places):
                    self._places.append(self._places_of(result.dictionary.get_path_strings(group.prim_list)))
                forces[self._places[index]] += _copies(group)[0].reshape(group.prim_count, -1, 3).sum(axis=1)
                index += 1
        return forces[:-1].reshape(*self._shape, 3)

    def close(self) -> None:
        """Let go of PhysX."""
        self._query.close_sync()

    def _places_of(self, found: Sequence[str]) -> NDArray[np.intp]:
        place = {path: k for k, path in enumerate(self._paths)}
        return np.array([place.get(path, -1) for path in found], np.intp)


class PhysxContactPoints(ContactPoints):
    """Points and normals of the `most` strongest contacts in each slot.

    Args:
        physx: what simulates them.
        query: selects colliders.
        slot_of: slot of each collider, by its path.
        most: contacts in a slot.
    """

    _KINDS = ('rawContactForce', 'rawContactPoint', 'rawContactNormal')

    def __init__(self, physx: Any, query: Any, slot_of: Mapping[str, int], most: int):
        self._physx, self._query, self._slot_of, self._most = physx, query, slot_of, most
        self._slots = max(slot_of.values()) + 1

    @override
    def read(self) -> Floats:
        found: list[dict[str, list[Floats]]] = [{kind: [] for kind in self._KINDS} for _ in range(self._slots)]
        with self._physx.read(self._query, list(self._KINDS)).wait() as result:
            while (group := result.fetch_next().wait()) is not None:
                kind = result.dictionary.token_to_string(group.attribute)
                paths = result.dictionary.get_path_strings(group.prim_list)
                for path, values in zip(paths, _copies(group), strict=True):
                    found[self._slot_of[path]][kind].append(values)
        points = np.zeros((self._slots, self._most, 6), np.float32)
        for slot, kinds in enumerate(found):
            if kinds[self._KINDS[0]]:
                forces, places, normals = (np.concatenate(kinds[kind]) for kind in self._KINDS)
                strongest(forces, places, normals, points[slot])
        return points

    def close(self) -> None:
        """Let go of PhysX."""
        self._query.close_sync()


class PhysxStage(TensorAccess):
    """`slots` copies of what a USD text describes, each in its own physics scene, in one instance of PhysX.

    Copies do not meet, and each is simulated as it would be alone, bit for bit.

    Args:
        layout: prims of one env.
        slots: number of copies.
    """

    shared, common = False, '/World/common'

    def __init__(self, layout: StageLayout, slots: int):
        self._attach('cpu', slots, f'def Xform "{slot_name(0)}"\n{{\n{layout.text}}}\n')

    def _attach(self, device: str, slots: int, prims: str, places: NDArray[np.floating] | None = None) -> None:
        """Open a stage with these prims, copy the first slot, and have an instance of PhysX simulate it.

        Copies stand where the first one does, or at `places` `(slots, 3)` [m].
        """
        _start(device)
        import ovstage

        self.slots, self.roots = slots, [f'/World/{slot_name(slot)}' for slot in range(slots)]
        self._open: list[Any] = []  # what holds on to PhysX
        self._stage = ovstage.Stage(f'internutopia-{next(_NAMES)}')
        self._physx = self._new_instance()
        source = f'{_HEADER}def Xform "World"\n{{\n{prims}}}\n'.replace('@', self.roots[0])
        ovstage.population.open_usd_from_string(self._stage, source, ordinal=1, domains=ovstage.PopulationDomain.ALL)
        self._stage.advance_write_floor(ordinal=1).wait()
        ordinal = 1
        if slots > 1:
            ordinal = 2
            self._stage.clone(self.roots[0], self.roots[1:], ordinal)
            self._stage.advance_write_floor(ordinal=ordinal).wait()
            if places is not None:
                ordinal = 3
                _place(self._stage, self.roots[1:], places[1:], ordinal)
        self._physx.wait_task(self._physx.attach_ovstage(self._stage, read_ordinal=ordinal))
        self._physx.warmup()
        _stages.add(self)

    def _new_instance(self) -> Any:
        from ovphysx import PhysX

        return PhysX()

    @override
    def step(self, dt: float) -> None:
        self._physx.step_sync(dt)

    @override
    def columns(self, kind: str, paths: Sequence[str]) -> BoundColumns:
        columns = PhysxColumns(*self._bind(kind, paths))
        self._open.append(columns)
        return columns

    def _bind(self, kind: str, paths: Sequence[str]) -> tuple[Any, NDArray[np.intp]]:
        """Return a tensor of things in all slots, and the row of each, `(slots, count)`."""
        from ovphysx.types import TensorType

        with warnings.catch_warnings():
            warnings.simplefilter('ignore', DeprecationWarning)  # what replaces it is per axis, and slower
            binding = self._physx.create_tensor_binding(
                prim_paths=self.paths_everywhere(paths), tensor_type=TensorType[kind]
            )
        return binding, self.rows(binding.prim_paths, self.paths_everywhere(paths))

    @override
    def contact_forces(self, paths: Sequence[str], against: Sequence[str] = ()) -> PhysxContactForces:
        kinds = ('netNormalContactForce', 'netFrictionContactForce')
        if against:
            kinds = ('normalContactForceMatrix', 'frictionContactForceMatrix')
        query = self._contact_query(paths, against)
        forces = PhysxContactForces(self._physx, query, self.paths_everywhere(paths), (self.slots, len(paths)), kinds)
        self._open.append(forces)
        return forces

    @override
    def contact_points(self, paths: Sequence[str], most: int) -> PhysxContactPoints:
        slot_of = {path: slot for slot in range(self.slots) for path in self.paths_in(slot, paths)}
        points = PhysxContactPoints(self._physx, self._contact_query(paths), slot_of, most)
        self._open.append(points)
        return points

    @override
    def close(self) -> None:
        if self._stage is None or os.getpid() != _first[0][0]:
            return
        for columns in self._open:
            columns.close()
        self._open.clear()
        self._physx.wait_task(self._physx.detach_ovstage())
        self._stage.destroy()
        self._physx.destroy()
        self._stage = None
        _stages.discard(self)

    def _contact_query(self, paths: Sequence[str], against: Sequence[str] = ()) -> Any:
        from ovphysx.types import ContactSelection, SimObjectType

        selections = [
            ContactSelection(path, self.paths_in(slot, against))
            for slot in range(self.slots)
            for path in self.paths_in(slot, paths)
        ]
        return self._physx.query(SimObjectType.CONTACT_SENSOR, contacts=selections, metadata=False).wait()


def _place(stage: Any, paths: Sequence[str], places: NDArray[np.floating], ordinal: int) -> None:
    """Move prims of a stage to places, `(n, 3)` [m]."""
    import ovstage

    matrices = np.tile(np.eye(4), (len(places), 1, 1))
    matrices[:, 3, :3] = places
    with (
        ovstage.PathDictionary(stage) as dictionary,
        dictionary.create_path_list_from_strings(paths) as chosen,
        stage.query_from_path_list(chosen) as query,
    ):
        values, semantic = matrices.reshape(-1, 16), ovstage.AttributeSemantic.MATRIX
        stage.write_attribute(query, 'omni:xform', ordinal, values, is_array=False, semantic=semantic).wait()
    stage.compute_hierarchy(ordinal, ordinal)
    stage.advance_write_floor(ordinal=ordinal).wait()


def _copies(group: Any) -> list[Floats]:
    """Return copies of a group's arrays: while one of them is referred to, PhysX cannot be closed."""
    return [np.array(tensor, np.float32) for tensor in group.tensors]


def slot_name(slot: int) -> str:
    """Return the name of the prim of a slot."""
    return f's{slot:05}'
