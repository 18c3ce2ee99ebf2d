"""Convex decomposition: concave meshes -> convex parts, computed once per machine, then read from a cache.

A mesh falls into its connected pieces first, and each of them into parts by the rules of `convex_parts`. What these
leave over is decomposed by CoACD (https://github.com/SarahWeiii/CoACD) in separate processes, unless a piece or mesh
is too much work. Such a piece, and a mesh of too many parts, becomes plates along its faces, with a warning: it stays
hollow. So does, without one, what CoACD cuts into many more parts than it has plates. Where a tolerance is given,
parts are merged (`merging`).

The result is kept by `part_cache`, and the same on every machine, however busy, and for any number of processes: the
work of a piece is estimated from its shape. CoACD is stopped by time as a last resort only, with a warning, and then
nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

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
from internutopia.util.child_process import ChildDiedError, ChildProcess
from internutopia.util.log import log, warn
from internutopia.util.progress import progress_bar

P = ParamSpec('P')
R = TypeVar('R')
Mesh = tuple[NDArray[np.float64], NDArray[np.integer]]
"""Vertices `(n, 3)` and faces `(m, 3)`, counterclockwise seen from outside."""

MAX_TRIANGLES = 100_000
"""Meshes with more triangles are simplified before they are decomposed."""
MANY_TRIANGLES = 200_000
"""Number of triangles of meshes to decompose beyond which a message says that it takes long."""
SHARED_TRIANGLES = 20_000
"""The same, beyond which all cores share all of the work, and not CoACD's alone: starting processes takes a second."""
MAX_WORK = 55_000
"""Maximum `work` of a piece for CoACD: 2 to 40 s of processor time."""
MAX_MESH_WORK = 110_000
"""The same for all pieces of a mesh; those of least work come first."""
MAX_SECONDS = 100
"""Processor time [s] after which CoACD is stopped anyway; its piece is tried again next time."""
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


@dataclass(frozen=True)
class _Fallback:
    """A piece that did not become convex parts of CoACD, but plates, or its hull: warned of at the end."""

    reason: str
    plates: str = ''  # mesh and piece; empty for a hull
    late: bool = False  # True if it is not kept

    @classmethod
    def to_plates(cls, reason: str, name: str, surface: Surface, *, late: bool = False) -> _Fallback:
        size = ' x '.join(f'{length:.3g}' for length in surface.extent)
        return cls(reason, f'{name} ({size} m, {len(surface.faces)} triangles)', late)


def _warn_of(fallbacks: Sequence[_Fallback]) -> None:
    """Warn of fallbacks, once for each reason."""
    for reason, count in Counter(each.reason for each in fallbacks if not each.plates).items():
        warn('%d concave pieces of meshes collide as their convex hulls: %s', count, reason, lasting=False)
    plates: dict[tuple[bool, str], list[str]] = {}
    for each in sorted((each for each in fallbacks if each.plates), key=lambda each: each.late):
        plates.setdefault((each.late, each.reason), []).append(each.plates)
    for (late, reason), meshes in plates.items():
        more = f' and {len(meshes) - _NAMED} more' if len(meshes) > _NAMED else ''
        warn(
            'meshes collide as plates along their faces, as they %s: %s%s. If their size is wrong, change the '
            'scale; otherwise simplify or split them, or set, for those that need not be hollow, '
            'physics:approximation = "convexHull"',
            *(reason, ', '.join(meshes[:_NAMED]), more),
            lasting=not late,
        )


@dataclass
class _Result:
    parts: list[ConvexPart] = field(default_factory=list)
    final: bool = True  # False if another attempt may give a better result
    fallbacks: list[_Fallback] = field(default_factory=list)


def _compute(jobs: Mapping[str, _Job]) -> Iterator[tuple[str, _Result]]:
    """Decompose meshes; yields them in their order, so that what is done before an interruption is kept."""
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
    for job in jobs.values():
        if len(job.mesh[1]) > MAX_TRIANGLES:
            count = len(job.mesh[1])
            warn('%s: %d triangles are simplified to %d for decomposition', job.name, count, MAX_TRIANGLES)
    workers = _Workers(_core_count(), shared=triangles > SHARED_TRIANGLES)
    pool = ThreadPoolExecutor(2 * _core_count())  # of meshes, half of which may wait for CoACD
    try:
        with progress_bar('decomposing colliders', len(jobs)) as advance:
            started = [(key, pool.submit(workers.decompose, job)) for key, job in jobs.items()]
            for key, result in started:
                yield key, result.result()
                advance()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a job that still works was interrupted; its result is not used
        workers.close()
    _warn_of([fallback for _, result in started for fallback in result.result().fallbacks])
    log.info(DECOMPOSED, len(jobs), *workers.seconds.slowest())


class _Workers:
    """Processes for the steps of decomposing meshes: as many for CoACD as there are cores, as many for the rest.

    Without `shared`, the rest is computed in this process.
    """

    def __init__(self, count: int, shared: bool):
        self.seconds = _Seconds()
        self._coacd = [CoacdProcess() for _ in range(count)]
        self._idle_coacd: SimpleQueue[CoacdProcess] = SimpleQueue()
        self._children: list[ChildProcess] = []
        self._idle: SimpleQueue[ChildProcess | None] | None = SimpleQueue() if shared and count > 1 else None
        for process in self._coacd:
            self._idle_coacd.put(process)
            if self._idle is not None:
                self._idle.put(None)  # started when it is needed
        self._pool = ThreadPoolExecutor(count)
        self._closed = False

    def decompose(self, job: _Job) -> _Result:
        """Decompose a mesh; its pieces side by side."""
        result = _Result()
        with self.seconds.of(job.name):
            pieces, heavy = self._call(_split, job, MAX_WORK, MAX_MESH_WORK)
        why = 'are too much work for CoACD'
        result.fallbacks = [_Fallback.to_plates(why, job.name, surface) for surface in heavy]
        solids = [piece for piece in pieces if isinstance(piece, Solid)]
        coacd = {id(solid): self._pool.submit(self._run_coacd, job.name, solid) for solid in solids}
        for piece in pieces:
            if isinstance(piece, Solid):
                _add_decomposed(result, piece, coacd[id(piece)], job.name)
            else:
                result.parts += piece
        if job.finest or len(result.parts) > MAX_PARTS:
            with self.seconds.of(job.name):
                result.parts, whole = self._call(_finished, job, result.parts, MAX_PARTS)
            if whole is not None:
                why = f'would have more than {MAX_PARTS} convex parts'
                result.fallbacks.append(_Fallback.to_plates(why, job.name, whole))
        return result

    def close(self) -> None:
        """End all processes."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._coacd:
            process.close()
        for child in self._children:
            child.kill()

    def _call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function of this module in an idle process, or here if they are not shared or one has died."""
        if self._idle is None:
            return function(*args, **kwargs)
        child = self._idle.get()
        try:
            if child is None:
                child = ChildProcess(env={**os.environ, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'})
                self._children.append(child)
            return child.call(None, function, *args, **kwargs)
        except ChildDiedError:
            child = None
            if self._closed:
                raise
            return function(*args, **kwargs)
        finally:
            self._idle.put(child)

    def _run_coacd(self, name: str, solid: Solid) -> list[ConvexPart]:
        process = self._idle_coacd.get()
        try:
            with self.seconds.of(name):
                return _decomposed(solid, process)
        finally:
            self._idle_coacd.put(process)


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


def _add_decomposed(result: _Result, solid: Solid, parts: Future[list[ConvexPart]], name: str) -> None:
    """Wait for the parts of a piece; what takes too long becomes plates, what cannot be computed its convex hull."""
    try:
        result.parts += parts.result()
        return
    except TimeoutError:
        result.parts += sheet_parts(solid.surface, solid.tolerance)
        result.final = False
        reason = f'take CoACD longer than {MAX_SECONDS} s, which is tried again next time'
        result.fallbacks.append(_Fallback.to_plates(reason, name, solid.surface, late=True))
        return
    except ImportError:
        result.fallbacks.append(_Fallback('coacd is missing; `pip install coacd`'))
    except RuntimeError as error:
        result.fallbacks.append(_Fallback(str(error)))
    result.parts.append(hull_part(hull(solid.surface.vertices), solid.tolerance))
    result.final = False


def _split(job: _Job, most: int, most_of_all: int) -> tuple[list[list[ConvexPart] | Solid], list[Surface]]:
    """Return a mesh as one part, or else the parts of each of its connected pieces, or what is left to CoACD.

    That is at most so much `work` each and together, those of least work first. Others are plates; they come second.
    """
    vertices, faces = job.in_metres()
    if len(faces) > MAX_TRIANGLES:
        surface = simplified(vertices, faces, MAX_TRIANGLES)
        vertices, faces = surface.vertices, surface.faces
    whole = Surface(vertices, np.asarray(faces, np.int64))
    if job.finest and (part := whole_part(whole, job.finest)) is not None:
        return [[part]], []
    found = [parts_of(piece, job.finest) for piece in pieces(vertices, faces)]
    solids = [(piece.work, place) for place, piece in enumerate(found) if isinstance(piece, Solid)]
    total, heavy = 0.0, list[Surface]()
    for work, place in sorted(solids):
        solid = found[place]
        total += work
        if isinstance(solid, Solid) and (work > most or total > most_of_all):
            heavy.append(solid.surface)
            found[place] = sheet_parts(solid.surface, solid.tolerance)
    return found, heavy


def _finished(job: _Job, parts: list[ConvexPart], most: int) -> tuple[list[ConvexPart], Surface | None]:
    """Return the parts of a mesh, merged if they may be coarse; plates if they are too many, which come second."""
    whole: Surface | None = None
    if len(parts) > most:
        whole = simplified(*job.in_metres(), MAX_TRIANGLES)
        parts = sheet_parts(whole, tolerance_of(whole, job.finest))
    if job.finest:
        parts = merged(parts, min(job.finest, MERGED_SHARE * _size(job.mesh, job.scale)))
    return parts, whole


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
