"""Cache of convex parts, a file for each mesh, in a folder `decomposition` (`internutopia.util.cache_folder`)."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from internutopia.util.cache_folder import CacheFolder


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
        """Return the part of a mesh that is larger by a factor; a negative one mirrors it."""
        return ConvexPart(self.vertices * factor, self.volume * abs(factor) ** 3, self.axes)


class PartCache:
    """Cache of the parts of meshes on disk."""

    def __init__(self) -> None:
        self._folder = CacheFolder('decomposition', 'decomposed meshes')

    def load(self, keys: Iterable[str]) -> dict[str, list[ConvexPart]]:
        """Load the parts of those meshes that are in the cache, and are valid."""
        loaded = {key: _load(self._folder.used(f'{key}.npz')) for key in keys}
        return {key: parts for key, parts in loaded.items() if parts is not None}

    def store(self, key: str, parts: list[ConvexPart]) -> None:
        """Put parts into the cache."""
        vertices = np.concatenate([np.zeros((0, 3)), *(part.vertices for part in parts)])
        ends = np.cumsum([len(part.vertices) for part in parts], dtype=np.int64)
        axes = [np.zeros((3, 3)) if part.axes is None else part.axes for part in parts]
        volumes = np.array([part.volume for part in parts])
        arrays = {'vertices': vertices, 'ends': ends, 'volumes': volumes, 'axes': np.reshape(axes, (-1, 3, 3))}
        self._folder.write(f'{key}.npz', lambda file: np.savez(file, **arrays))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from computing at the same time; does nothing where the system has no file locks."""
        with ExitStack() as stack:
            # Windows; some network folders; those that may only be read. Then a mesh may be computed twice.
            with suppress(ImportError, OSError):
                import fcntl

                self._folder.make()
                fcntl.flock(stack.enter_context((self._folder.path / 'lock').open('w')), fcntl.LOCK_EX)
            yield


def _load(file: Path) -> list[ConvexPart] | None:
    """Return the parts in a file of the cache; None if there is none, or no valid one."""
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
