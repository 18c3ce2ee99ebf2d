"""Convex decomposition: concave meshes -> convex parts, computed once per machine, then read from a cache.

A mesh falls into its connected pieces first. A closed piece that is convex is one part. A concave one is decomposed by
CoACD (https://github.com/SarahWeiii/CoACD), so that gaps wider than about `TOLERANCE` stay open. An open piece is a
sheet, such as the walls of a room that has no outside: it becomes plates, whose fronts are its faces; and so does the
inside of a room, a closed piece that looks inwards.

What takes CoACD too long, or would be too many parts, becomes plates along its faces, too, with a warning: it stays
hollow. So does, without one, what CoACD cuts into many more parts than it has plates.

The cache is the folder `decomposition` below the environment variable `INTERNUTOPIA_CACHE_PATH`, or else below the
user's cache folder. Its files are named by what they were computed from, so they are never out of date, and may be
deleted at any time. The result is the same on every machine and for any number of threads, but for what takes too long
on a slow one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.model.meshes.coacd_worker import CoacdProcess
from internutopia.core.model.meshes.surfaces import FLAT_THICKNESS, Surface, pieces, plates, signed_volume, simplified
from internutopia.core.util import log

Mesh = tuple[NDArray[np.float64], NDArray[np.integer]]
"""Vertices `(n, 3)` [m] and faces `(m, 3)`, counterclockwise seen from outside."""

TOLERANCE = 0.1
"""How far [m] the parts may stand over the surface of a large mesh; of a small one, 5 % of half its extent."""
MAX_TRIANGLES = 100_000
"""Meshes with more triangles are simplified before they are decomposed."""
MAX_SECONDS = 60
"""Processor time [s] that a concave piece may take."""
MAX_PLATES = 2000
"""A sheet that would need more plates is made coarser."""
MANY_PARTS = 100
"""A concave piece that CoACD cuts into more parts than this, and than it has plates, becomes plates."""
MAX_PARTS = 4000
"""A mesh that would have more parts becomes plates."""
ROOM_SIZE = 2.0
"""A closed piece that looks inwards is a room if it is larger than this [m] along x, y and z, else a mistake."""

_NAMED = 5  # meshes that a warning names before it only counts the rest
_FORMAT = 2  # of the files in the cache; to be raised when anything in here changes what is computed
# A search that is a good deal faster than CoACD's default and finds as few parts of walls and furniture.
_SEARCH: dict[str, Any] = {'mcts_nodes': 10, 'mcts_iterations': 40, 'mcts_max_depth': 3, 'resolution': 1000, 'seed': 0}


@dataclass(frozen=True)
class ConvexPart:
    """The convex hull of `vertices` `(n, 3)` [m], and what it encloses, `volume` [m3]."""

    vertices: NDArray[np.float64]
    volume: float


def decompose(meshes: Sequence[Mesh], names: Sequence[str] | None = None) -> list[list[ConvexPart]]:
    """Convex parts of each mesh, out of the cache or computed by all cores, with a progress bar in a terminal.

    Two processes never compute the same: the second one waits for the first. Without `coacd`, concave closed pieces
    become their convex hulls, with a warning; a cache that cannot be written is another warning.

    Args:
        meshes: What is to be decomposed.
        names: What warnings call each mesh, such as the path of its prim; None means by its number.
    """
    keys = [_key(mesh) for mesh in meshes]
    wanted = dict(zip(keys, meshes, strict=True))
    called = dict(zip(keys, names or [f'mesh {i}' for i in range(len(meshes))], strict=True))
    folder = _cache_folder()
    found = _load_all(folder, wanted)
    if len(found) < len(wanted):
        with _lock(folder):
            found |= _load_all(folder, {key: wanted[key] for key in wanted if key not in found})
            for key, result in _compute({key: wanted[key] for key in wanted if key not in found}, called):
                found[key] = result.parts
                if result.final:
                    _store(folder, key, result.parts)
    return [found[key] for key in keys]


def is_room(piece: Surface) -> bool:
    """Whether a closed piece is the inside of a room: it looks inwards, and is large."""
    return piece.volume < 0 and bool(piece.extent.min() > ROOM_SIZE)


@dataclass
class _Result:
    parts: list[ConvexPart] = field(default_factory=list)
    final: bool = True  # False if another attempt may give a better result


@dataclass
class _Fallbacks:
    """Pieces that did not become convex parts of CoACD: warned of at the end, a line for each reason."""

    hulls: Counter[str] = field(default_factory=Counter)  # pieces by reason
    plates: dict[str, list[str]] = field(default_factory=dict)  # meshes by reason

    def add_plates(self, reason: str, name: str, surface: Surface) -> None:
        size = ' x '.join(f'{length:.3g}' for length in surface.extent)
        self.plates.setdefault(reason, []).append(f'{name} ({size} m, {len(surface.faces)} triangles)')

    def warn(self) -> None:
        for reason, count in self.hulls.items():
            log.warning('%d concave pieces of meshes collide as their convex hulls: %s', count, reason)
        for reason, meshes in self.plates.items():
            more = f' and {len(meshes) - _NAMED} more' if len(meshes) > _NAMED else ''
            log.warning(
                'meshes collide as plates along their faces, as they %s: %s%s. If their size is wrong, change the '
                'scale; else simplify or split them, or give those that need not be hollow '
                'physics:approximation = "convexHull"',
                *(reason, ', '.join(meshes[:_NAMED]), more),
            )


def _compute(meshes: Mapping[str, Mesh], names: Mapping[str, str]) -> Iterator[tuple[str, _Result]]:
    """Decompose meshes, pieces at the same time; results in the order of the meshes, as soon as they are there."""
    if not meshes:
        return
    processes = [CoacdProcess() for _ in range(_core_count())]
    idle: SimpleQueue[CoacdProcess] = SimpleQueue()
    for process in processes:
        idle.put(process)
    pool = ThreadPoolExecutor(len(processes))
    fallbacks = _Fallbacks()
    try:
        jobs = {
            key: [(piece, pool.submit(_convex_parts, piece, idle)) for piece in _split(mesh, names[key])]
            for key, mesh in meshes.items()
        }
        with _progress(sum(map(len, jobs.values()))) as advance:
            for key, pairs in jobs.items():
                result = _Result()
                for piece, job in pairs:
                    _add_piece(result, piece, job, names[key], fallbacks)
                    advance()
                if len(result.parts) > MAX_PARTS:
                    whole = simplified(*meshes[key], MAX_TRIANGLES)
                    result.parts = _sheet_parts(whole)
                    fallbacks.add_plates(f'would have more than {MAX_PARTS} convex parts', names[key], whole)
                yield key, result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a job that still works was interrupted; nobody waits for it
        for process in processes:
            process.close()
    fallbacks.warn()


def _add_piece(
    result: _Result, piece: Surface, job: Future[list[ConvexPart]], name: str, fallbacks: _Fallbacks
) -> None:
    """Wait for the parts of a piece; what takes too long becomes plates, what cannot be computed its convex hull."""
    try:
        result.parts += job.result()
        return
    except TimeoutError:
        result.parts += _sheet_parts(_facing_out(piece))
        fallbacks.add_plates(f'take CoACD longer than {MAX_SECONDS} s', name, piece)
        return
    except ImportError:
        fallbacks.hulls['coacd is missing; `pip install coacd`'] += 1
    except RuntimeError as error:
        fallbacks.hulls[str(error)] += 1
    result.parts.append(ConvexPart(piece.vertices, abs(piece.volume)))
    result.final = False


def _split(mesh: Mesh, name: str) -> list[Surface]:
    vertices, faces = mesh
    if len(faces) > MAX_TRIANGLES:
        log.warning('%s: %d triangles are simplified to %d, to be decomposed', name, len(faces), MAX_TRIANGLES)
        surface = simplified(vertices, faces, MAX_TRIANGLES)
        vertices, faces = surface.vertices, surface.faces
    return pieces(vertices, faces)


def _convex_parts(piece: Surface, idle: SimpleQueue[CoacdProcess]) -> list[ConvexPart]:
    """Convex parts of one connected piece. ImportError, TimeoutError, RuntimeError as `CoacdProcess.run`."""
    if not piece.is_closed() or is_room(piece):
        return _sheet_parts(piece)
    solid = _facing_out(piece)
    return [ConvexPart(solid.vertices, solid.volume)] if solid.is_convex() else _solid_parts(solid, idle)


def _facing_out(closed: Surface) -> Surface:
    return closed if closed.volume > 0 else closed.flipped()


def _sheet_parts(sheet: Surface) -> list[ConvexPart]:
    depth = float(sheet.extent.min())
    thickness = FLAT_THICKNESS if depth < 1e-3 else min(FLAT_THICKNESS, depth / 4)
    while len(found := plates(sheet, thickness)) > MAX_PLATES:
        sheet = simplified(sheet.vertices, sheet.faces, len(sheet.faces) // 2)
    return [ConvexPart(vertices, volume) for vertices, volume in found]


def _solid_parts(solid: Surface, idle: SimpleQueue[CoacdProcess]) -> list[ConvexPart]:
    tolerance = min(TOLERANCE, 0.05 * float(solid.extent.max()) / 2)
    options = _SEARCH | {'threshold': tolerance, 'real_metric': True}
    process = idle.get()
    try:
        parts = process.run(solid.vertices, solid.faces, options, MAX_SECONDS)
    finally:
        idle.put(process)
    if len(parts) > MANY_PARTS and len(shell := _sheet_parts(solid)) < len(parts):
        return shell  # fewer, and where the surface is
    return [ConvexPart(vertices, abs(signed_volume(vertices[faces]))) for vertices, faces in parts]


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar that the function it gives advances; nothing unless standard error is a terminal and rich installed."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda: None
        return
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task('decomposing colliders', total=total)
        yield lambda: bar.advance(task)


def _key(mesh: Mesh) -> str:
    vertices, faces = mesh
    digest = hashlib.blake2b(f'{_FORMAT} {vertices.shape} {faces.shape}'.encode(), digest_size=16)
    digest.update(np.ascontiguousarray(vertices, np.float64).tobytes())
    digest.update(np.ascontiguousarray(faces, np.int64).tobytes())
    return digest.hexdigest()


def _cache_folder() -> Path | None:
    """The folder of the cache, made if it is not there; None, with a warning, if it cannot be written."""
    from platformdirs import user_cache_path

    root = os.environ.get('INTERNUTOPIA_CACHE_PATH')
    folder = (Path(root) if root else user_cache_path('internutopia', appauthor=False)) / 'decomposition'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        log.warning('decomposed meshes are not kept: %s; INTERNUTOPIA_CACHE_PATH can name another folder', error)
        return None


def _load_all(folder: Path | None, keys: Mapping[str, Mesh]) -> dict[str, list[ConvexPart]]:
    loaded = {key: _load(folder / f'{key}.npz') for key in keys} if folder else {}
    return {key: parts for key, parts in loaded.items() if parts is not None}


def _load(file: Path) -> list[ConvexPart] | None:
    """The parts in a file of the cache; None if there is none, or nothing that makes sense."""
    try:
        with np.load(file, allow_pickle=False) as data:
            vertices, ends, volumes = data['vertices'], data['ends'], data['volumes']
        if vertices.shape[1:] != (3,) or len(ends) != len(volumes) or (len(ends) and ends[-1] != len(vertices)):
            return None
        groups = np.split(vertices, ends[:-1]) if len(ends) else []
        return [ConvexPart(group, float(volume)) for group, volume in zip(groups, volumes, strict=True)]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def _store(folder: Path | None, key: str, parts: list[ConvexPart]) -> None:
    """Put parts into the cache; whoever reads at the same time sees all or nothing."""
    if folder is None:
        return
    vertices = np.concatenate([np.zeros((0, 3)), *(part.vertices for part in parts)])
    ends = np.cumsum([len(part.vertices) for part in parts], dtype=np.int64)
    try:
        with tempfile.NamedTemporaryFile(dir=folder, suffix='.part', delete=False) as file:
            np.savez(file, vertices=vertices, ends=ends, volumes=np.array([part.volume for part in parts]))
        os.replace(file.name, folder / f'{key}.npz')
    except OSError as error:
        log.warning('decomposed meshes are not kept: %s', error)


@contextmanager
def _lock(folder: Path | None) -> Iterator[None]:
    """Keep other processes from computing at the same time; nothing where the system has no file locks."""
    if folder is None:
        yield
        return
    with (folder / 'lock').open('w') as file:
        with suppress(ImportError, OSError):  # Windows; some network folders. Then a mesh may be computed twice.
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
