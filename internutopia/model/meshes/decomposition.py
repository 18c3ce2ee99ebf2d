"""Convex decomposition: concave meshes -> convex parts, computed once per machine, then read from a cache.

A mesh falls into its connected pieces first, and each of them into parts by the rules of `convex_parts`. What these
leave over is decomposed by CoACD (https://github.com/SarahWeiii/CoACD) in processes of its own, unless a piece or mesh
is too much work. Such a piece, and a mesh of too many parts, becomes plates along its faces, with a warning: it stays
hollow. So does, without one, what CoACD cuts into many more parts than it has plates. Where a tolerance is given,
parts are merged (`merging`).

The result is kept by `part_cache`, and the same on every machine, however busy, and for any number of processes: the
work of a piece is estimated from its shape. CoACD is stopped by time as a last resort only, with a warning, and then
nothing is kept.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.model.meshes.coacd_worker import CoacdProcess
from internutopia.model.meshes.convex_parts import (
    RELATIVE_TOLERANCE,
    Solid,
    hull_part,
    parts_of,
    sheet_parts,
    tolerance_of,
    whole_part,
)
from internutopia.model.meshes.hulls import hull
from internutopia.model.meshes.merging import merged
from internutopia.model.meshes.part_cache import ConvexPart, PartCache
from internutopia.model.meshes.sheets import SCALE_FREE_SIZE
from internutopia.model.meshes.surfaces import Surface, pieces, simplified
from internutopia.util.log import log, warn
from internutopia.util.progress import progress_bar

Mesh = tuple[NDArray[np.float64], NDArray[np.integer]]
"""Vertices `(n, 3)` and faces `(m, 3)`, counterclockwise seen from outside."""

MAX_TRIANGLES = 100_000
"""Meshes with more triangles are simplified before they are decomposed."""
MANY_TRIANGLES = 200_000
"""Number of triangles of meshes to decompose beyond which a message says that it takes long."""
MAX_WORK = 55_000
"""Maximum `work` of a piece for CoACD: 2 to 40 s of processor time."""
MAX_MESH_WORK = 110_000
"""The same for all pieces of a mesh; those of least work come first."""
MAX_SECONDS = 100
"""Processor time [s] after which CoACD is stopped all the same; its piece is tried again next time."""
MANY_PARTS = 100
"""Maximum number of CoACD's parts of a concave piece, beyond which, if plates are fewer, it becomes plates."""
MERGED_SHARE = 0.05
"""Tolerance of merged parts, as a share of the mesh's size: a cup stays hollow."""
MAX_PARTS = 4000
"""Maximum number of parts of a mesh, beyond which it becomes plates."""
DECOMPOSED = 'meshes were decomposed (%d); the slowest is %s, it took %.1f s'
"""The message that is logged at the end, with the number of meshes, a name and seconds."""

_NAMED = 5  # meshes that a warning names before it only counts the rest
_FORMAT = 7  # of the files in the cache; to be raised when what is computed changes
# A search that is a good deal faster than CoACD's default and finds as few parts of walls and furniture. Most closed
# pieces need no preprocessing, which takes ten times as long as the rest.
_SEARCH: dict[str, Any] = {
    **{'mcts_nodes': 6, 'mcts_iterations': 20, 'mcts_max_depth': 2},
    **{'resolution': 1000, 'seed': 0, 'preprocess_mode': 'off', 'real_metric': True},
}
_PREPROCESSED: dict[str, Any] = {'preprocess_mode': 'auto'}


def decompose(
    meshes: Sequence[Mesh],
    names: Sequence[str] | None = None,
    scales: Sequence[float] | None = None,
    finest: Sequence[float] | None = None,
) -> list[list[ConvexPart]]:
    """Return convex parts of each mesh, cached or computed by all cores, with a progress bar in a terminal.

    Two processes never compute the same: the second one waits for the first. Without `coacd`, concave closed pieces
    become their convex hulls, with a warning; a cache that cannot be written is another warning.

    Args:
        meshes: What is to be decomposed. Those with the same numbers share the work, at any scale if they are small.
        names: What warnings call each mesh, such as the path of its prim; None means by its number.
        scales: What each mesh is multiplied by to be in metres, as the parts are; None means 1. A negative one mirrors
            it.
        finest: The least tolerance [m] of the parts of each mesh, such as `STATIC_TOLERANCE`; None means 0. That of a
            small mesh is rounded up or down by half at most, to a share of its size: so copies of other sizes share it.
    """
    factors = scales or [1.0] * len(meshes)
    least = finest or [0.0] * len(meshes)
    called = names or [f'mesh {i}' for i in range(len(meshes))]
    given = zip(meshes, map(abs, factors), called, least, strict=True)
    jobs = [_Job(mesh, scale, name, _rounded(finest, _size(mesh, scale))) for mesh, scale, name, finest in given]
    keys = [_key(job) for job in jobs]
    wanted = dict(zip(keys, jobs, strict=True))
    cache = PartCache()
    found = cache.load(wanted)
    if len(found) < len(wanted):
        with cache.lock():
            found |= cache.load([key for key in wanted if key not in found])
            for key, result in _compute({key: job for key, job in wanted.items() if key not in found}):
                found[key] = [part.scaled(1 / wanted[key].scale) for part in result.parts]
                if result.final:
                    cache.store(key, found[key])
    return [[part.scaled(factor) for part in found[key]] for key, factor in zip(keys, factors, strict=True)]


@dataclass(frozen=True)
class _Job:
    mesh: Mesh
    scale: float
    name: str
    finest: float

    def in_metres(self) -> Mesh:
        vertices, faces = self.mesh
        return np.asarray(vertices, float) * self.scale, faces


@dataclass
class _Result:
    parts: list[ConvexPart] = field(default_factory=list)
    final: bool = True  # False if another attempt may give a better result


@dataclass
class _Fallbacks:
    """Pieces that did not become convex parts of CoACD: warned of at the end, a line for each reason."""

    hulls: Counter[str] = field(default_factory=Counter)  # pieces by reason
    plates: dict[str, list[str]] = field(default_factory=dict)  # meshes by reason
    late: dict[str, list[str]] = field(default_factory=dict)  # likewise, those that are not kept

    def add_plates(self, reason: str, name: str, surface: Surface, *, late: bool = False) -> None:
        size = ' x '.join(f'{length:.3g}' for length in surface.extent)
        meshes = (self.late if late else self.plates).setdefault(reason, [])
        meshes.append(f'{name} ({size} m, {len(surface.faces)} triangles)')

    def warn(self) -> None:
        for reason, count in self.hulls.items():
            warn('%d concave pieces of meshes collide as their convex hulls: %s', count, reason, lasting=False)
        for reason, meshes in (*self.plates.items(), *self.late.items()):
            more = f' and {len(meshes) - _NAMED} more' if len(meshes) > _NAMED else ''
            warn(
                'meshes collide as plates along their faces, as they %s: %s%s. If their size is wrong, change the '
                'scale; otherwise simplify or split them, or set, for those that need not be hollow, '
                'physics:approximation = "convexHull"',
                *(reason, ', '.join(meshes[:_NAMED]), more),
                lasting=reason in self.plates,
            )


def _compute(jobs: Mapping[str, _Job]) -> Iterator[tuple[str, _Result]]:
    """Decompose meshes, in their order, so that what is done before an interruption is kept."""
    if not jobs:
        return
    triangles = sum(len(job.mesh[1]) for job in jobs.values())
    if triangles > MANY_TRIANGLES:  # of the moment: not among the warnings that are kept with a scene
        log.warning(
            '%d meshes of %d triangles together are decomposed into convex colliders. This may take minutes, once: '
            'each that is done is kept, also if you interrupt it. What need not be hollow takes no time with '
            'physics:approximation = "convexHull"',
            *(len(jobs), triangles),
        )
    processes = [CoacdProcess() for _ in range(_core_count())]
    idle: SimpleQueue[CoacdProcess] = SimpleQueue()
    for process in processes:
        idle.put(process)
    pool = ThreadPoolExecutor(len(processes))
    fallbacks, seconds = _Fallbacks(), _Seconds()
    waiting: deque[tuple[str, list[_Piece]]] = deque()
    try:
        with progress_bar('decomposing colliders', len(jobs)) as advance:
            for number, (key, job) in enumerate(jobs.items(), 1):
                waiting.append((key, _begin(job, pool, idle, seconds, fallbacks)))
                while waiting and (number == len(jobs) or _is_ready(waiting[0][1])):
                    ready, found = waiting.popleft()
                    yield ready, _finish(jobs[ready], found, fallbacks)
                    advance()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a job that still works was interrupted; its result is not used
        for process in processes:
            process.close()
    fallbacks.warn()
    log.info(DECOMPOSED, len(jobs), *seconds.slowest())


class _Seconds:
    """Computing time [s] of the meshes, in this process and in those of CoACD."""

    def __init__(self) -> None:
        self._spent: list[tuple[str, float]] = []

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._spent.append((name, time.perf_counter() - begin))

    def slowest(self) -> tuple[str, float]:
        total: dict[str, float] = {}
        for name, seconds in self._spent:
            total[name] = total.get(name, 0.0) + seconds
        return max(total.items(), key=lambda each: each[1])


@dataclass(frozen=True)
class _Decomposing:
    """A piece that CoACD is decomposing."""

    solid: Solid
    parts: Future[list[ConvexPart]]


_Piece = list[ConvexPart] | _Decomposing


def _is_ready(found: list[_Piece]) -> bool:
    """Return True if CoACD has decomposed all pieces that were left to it."""
    return all(piece.parts.done() for piece in found if isinstance(piece, _Decomposing))


def _begin(
    job: _Job, pool: ThreadPoolExecutor, idle: SimpleQueue[CoacdProcess], seconds: _Seconds, fallbacks: _Fallbacks
) -> list[_Piece]:
    """Split a mesh into pieces; those that are not too much work are left to CoACD."""
    with seconds.of(job.name):
        found = _split(job)
    solids = sorted((piece for piece in found if isinstance(piece, Solid)), key=lambda solid: solid.work)
    totals = itertools.accumulate(solid.work for solid in solids)
    feasible = [
        solid for solid, total in zip(solids, totals, strict=True) if solid.work <= MAX_WORK and total <= MAX_MESH_WORK
    ]

    def started(solid: Solid) -> _Piece:
        if any(solid is each for each in feasible):
            return _Decomposing(solid, pool.submit(decomposed, solid))
        fallbacks.add_plates('are too much work for CoACD', job.name, solid.surface)
        return sheet_parts(solid.surface, solid.tolerance)

    def decomposed(solid: Solid) -> list[ConvexPart]:
        process = idle.get()
        try:
            with seconds.of(job.name):
                return _decomposed(solid, process)
        finally:
            idle.put(process)

    return [started(piece) if isinstance(piece, Solid) else piece for piece in found]


def _finish(job: _Job, found: list[_Piece], fallbacks: _Fallbacks) -> _Result:
    """Wait for the parts of all pieces of a mesh."""
    result = _Result()
    for piece in found:
        if isinstance(piece, _Decomposing):
            _add_decomposed(result, piece, job.name, fallbacks)
        else:
            result.parts += piece
    if len(result.parts) > MAX_PARTS:
        whole = simplified(*job.in_metres(), MAX_TRIANGLES)
        result.parts = sheet_parts(whole, tolerance_of(whole, job.finest))
        fallbacks.add_plates(f'would have more than {MAX_PARTS} convex parts', job.name, whole)
    if job.finest:
        result.parts = merged(result.parts, min(job.finest, MERGED_SHARE * _size(job.mesh, job.scale)))
    return result


def _add_decomposed(result: _Result, piece: _Decomposing, name: str, fallbacks: _Fallbacks) -> None:
    """Wait for the parts of a piece; what takes too long becomes plates, what cannot be computed its convex hull."""
    solid = piece.solid
    try:
        result.parts += piece.parts.result()
        return
    except TimeoutError:
        result.parts += sheet_parts(solid.surface, solid.tolerance)
        result.final = False
        reason = f'take CoACD longer than {MAX_SECONDS} s, which is tried again next time'
        fallbacks.add_plates(reason, name, solid.surface, late=True)
        return
    except ImportError:
        fallbacks.hulls['coacd is missing; `pip install coacd`'] += 1
    except RuntimeError as error:
        fallbacks.hulls[str(error)] += 1
    result.parts.append(hull_part(hull(solid.surface.vertices), solid.tolerance))
    result.final = False


def _split(job: _Job) -> list[list[ConvexPart] | Solid]:
    """Return a mesh as one part, or else the parts of each of its connected pieces."""
    vertices, faces = job.in_metres()
    if len(faces) > MAX_TRIANGLES:
        warn('%s: %d triangles are simplified to %d for decomposition', job.name, len(faces), MAX_TRIANGLES)
        surface = simplified(vertices, faces, MAX_TRIANGLES)
        vertices, faces = surface.vertices, surface.faces
    whole = Surface(vertices, np.asarray(faces, np.int64))
    if job.finest and (part := whole_part(whole, job.finest)) is not None:
        return [[part]]
    return [parts_of(piece, job.finest) for piece in pieces(vertices, faces)]


def _decomposed(solid: Solid, process: CoacdProcess) -> list[ConvexPart]:
    """Decompose a solid by CoACD. ImportError, TimeoutError, RuntimeError as `CoacdProcess.run`."""
    surface, options = solid.surface, _SEARCH | {'threshold': solid.tolerance}
    try:
        parts = process.run(surface.vertices, surface.faces, options, MAX_SECONDS)
    except RuntimeError:  # it may crash on surfaces that pass through themselves
        parts = process.run(surface.vertices, surface.faces, options | _PREPROCESSED, MAX_SECONDS)
    if len(parts) > MANY_PARTS and len(shell := sheet_parts(surface, solid.tolerance)) < len(parts):
        return shell  # fewer, and where the surface is
    return [hull_part(Surface(vertices, faces.astype(np.int64)), solid.tolerance) for vertices, faces in parts]


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


def _size(mesh: Mesh, scale: float) -> float:
    """Return the greatest extent [m]."""
    return float(np.ptp(np.asarray(mesh[0], float), axis=0).max(initial=0.0)) * scale


def _rounded(finest: float, size: float) -> float:
    """Return a tolerance that is the relative one of a small mesh, times a power of two."""
    if not finest or not 0 < size <= SCALE_FREE_SIZE:
        return finest
    return RELATIVE_TOLERANCE * size * 2.0 ** round(np.log2(finest / (RELATIVE_TOLERANCE * size)))


def _key(job: _Job) -> str:
    """Return the key of a mesh in the cache: its numbers, and if it is large its scale."""
    vertices, faces = np.ascontiguousarray(job.mesh[0], np.float64), np.ascontiguousarray(job.mesh[1], np.int64)
    size = _size(job.mesh, job.scale)
    unit = f'{job.scale:.5g} {job.finest:.5g}' if size > SCALE_FREE_SIZE else f'any {job.finest / (size or 1.0):.5g}'
    digest = hashlib.blake2b(f'{_FORMAT} {unit} {vertices.shape} {faces.shape}'.encode(), digest_size=16)
    digest.update(vertices.tobytes())
    digest.update(faces.tobytes())
    return digest.hexdigest()
