"""Cache of convex parts, a file for each mesh.

It is the folder `decomposition` below the environment variable `INTERNUTOPIA_CACHE_PATH`, or else below the user's
cache folder. Its files are named by what they were computed from, so they are never out of date, and may be deleted at
any time.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from internutopia.core.util import log


@dataclass(frozen=True)
class ConvexPart:
    """A convex part of a mesh.

    Attributes:
        vertices: `(n, 3)` [m]; the part is their convex hull.
        volume: What it encloses [m3].
        axes: If it is given, `(3, 3)`, the part is a box instead: the least one around the vertices along these right-
            handed axes, one a column.
    """

    vertices: NDArray[np.float64]
    volume: float
    axes: NDArray[np.float64] | None = None

    def scaled(self, factor: float) -> ConvexPart:
        """The part of a mesh that is larger by a factor; a negative one mirrors it."""
        return ConvexPart(self.vertices * factor, self.volume * abs(factor) ** 3, self.axes)


class PartCache:
    """The parts of meshes on disk. If the folder cannot be written, there is none, and a warning."""

    def __init__(self) -> None:
        from platformdirs import user_cache_path

        root = os.environ.get('INTERNUTOPIA_CACHE_PATH')
        folder = (Path(root) if root else user_cache_path('internutopia', appauthor=False)) / 'decomposition'
        self._folder: Path | None = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            log.warning('decomposed meshes are not kept: %s; INTERNUTOPIA_CACHE_PATH can name another folder', error)
            self._folder = None

    def load(self, keys: Iterable[str]) -> dict[str, list[ConvexPart]]:
        """The parts of those meshes that are in the cache, and make sense."""
        if self._folder is None:
            return {}
        loaded = {key: _load(self._folder / f'{key}.npz') for key in keys}
        return {key: parts for key, parts in loaded.items() if parts is not None}

    def store(self, key: str, parts: list[ConvexPart]) -> None:
        """Put parts into the cache; whoever reads at the same time sees all or nothing."""
        if self._folder is None:
            return
        vertices = np.concatenate([np.zeros((0, 3)), *(part.vertices for part in parts)])
        ends = np.cumsum([len(part.vertices) for part in parts], dtype=np.int64)
        axes = [np.zeros((3, 3)) if part.axes is None else part.axes for part in parts]
        volumes = np.array([part.volume for part in parts])
        try:
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix='.part', delete=False) as file:
                np.savez(file, vertices=vertices, ends=ends, volumes=volumes, axes=np.reshape(axes, (-1, 3, 3)))
            os.replace(file.name, self._folder / f'{key}.npz')
        except OSError as error:
            log.warning('decomposed meshes are not kept: %s', error)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from computing at the same time; nothing where the system has no file locks."""
        if self._folder is None:
            yield
            return
        with (self._folder / 'lock').open('w') as file:
            with suppress(ImportError, OSError):  # Windows; some network folders. Then a mesh may be computed twice.
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _load(file: Path) -> list[ConvexPart] | None:
    """The parts in a file of the cache; None if there is none, or nothing that makes sense."""
    try:
        with np.load(file, allow_pickle=False) as data:
            vertices, ends, volumes, axes = data['vertices'], data['ends'], data['volumes'], data['axes']
        if vertices.shape[1:] != (3,) or axes.shape != (len(ends), 3, 3) or len(ends) != len(volumes):
            return None
        if len(ends) and ends[-1] != len(vertices):
            return None
        groups = np.split(vertices, ends[:-1]) if len(ends) else []
        return [
            ConvexPart(group, float(volume), frame if frame.any() else None)
            for group, volume, frame in zip(groups, volumes, axes, strict=True)
        ]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
