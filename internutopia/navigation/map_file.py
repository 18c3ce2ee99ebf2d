"""Map file: a navigation map on disk, so that one that took long is there at once in later processes.

The files are the folder `maps` of the cache (`internutopia.util.cache_folder`). Their name is a hash of all that a
map depends on: what the scene is made of and where it is, contents of its files, the agent, the cells and the code.
They are arrays in NumPy's format; nothing in them is executed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from internutopia.model.asset_files import limits
from internutopia.model.asset_paths import resolve
from internutopia.model.importers.load import content_key
from internutopia.model.spec import SceneSpec
from internutopia.navigation.agent import Agent
from internutopia.navigation.graph import Graph
from internutopia.navigation.surface import Obstacles, Surface
from internutopia.util.cache_folder import CacheFolder, code_version, hashed
from internutopia.util.log import warn_once

LEAST_TIME = 0.2
"""Processor time [s] from which on making a map is worth keeping it."""
CAPACITY = 2 << 30
"""Bytes of all files, beyond which maps that were used least recently are deleted."""

_SPARSE = ('data', 'indices', 'indptr')


@dataclass(frozen=True)
class MapFile:
    """File of the map of a scene for an agent."""

    folder: CacheFolder
    name: str

    @classmethod
    def of(
        cls,
        scene: SceneSpec,
        agent: Agent,
        cell: float,
        movable: bool,
        bounds: tuple[Sequence[float], Sequence[float]] | None,
    ) -> MapFile:
        """Return the file of a map; see `NavigationMap.of_scene`. OSError or ValueError if the scene cannot be read."""
        assets = [scene.asset, *(each.asset for each in scene.objects)]
        contents = [content_key(resolve(asset)) for asset in assets if asset]
        code = code_version(), code_version(('navigation',), ('scipy',))
        choice = agent, cell, movable, bounds and tuple(map(tuple, bounds))
        name = hashed(code, limits().of_sizes(), scene, contents, choice)
        return cls(CacheFolder('maps', 'navigation maps', CAPACITY), f'{name}.npz')

    def read(self) -> tuple[Surface, Graph] | None:
        """Read the map, None if there is none; a damaged file is a warning and counts as none."""
        path = self.folder.used(self.name)
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return _surface(arrays), _graph(arrays)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
            warn_once('%s is damaged, the navigation map is made anew: %s', path, error, lasting=False)
            return None

    def write(self, surface: Surface, graph: Graph) -> None:
        """Keep a map."""
        parts: dict[str, Any] = {
            **{f'surface.{name}': value for name, value in _values(surface).items() if name != 'obstacles'},
            **{f'obstacles.{name}': value for name, value in _values(surface.obstacles).items()},
            **{f'graph.{name}': value for name, value in _values(graph).items() if name != 'lengths'},
            **{f'lengths.{name}': getattr(graph.lengths, name) for name in _SPARSE},
        }
        self.folder.write(self.name, lambda file: np.savez(file, **parts))


def _values(what: Any) -> dict[str, Any]:
    return {field.name: getattr(what, field.name) for field in fields(what)}


def _part(arrays: dict[str, Any], group: str) -> dict[str, Any]:
    prefix = f'{group}.'
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def _surface(arrays: dict[str, Any]) -> Surface:
    parts = _part(arrays, 'surface')
    spacing = float(parts.pop('spacing'))
    return Surface(spacing=spacing, obstacles=Obstacles(**_part(arrays, 'obstacles')), **parts)


def _graph(arrays: dict[str, Any]) -> Graph:
    parts = _part(arrays, 'graph')
    count, size = int(parts.pop('cell_count')), len(parts['places'])
    lengths = csr_array(tuple(arrays[f'lengths.{name}'] for name in _SPARSE), shape=(size, size))
    return Graph(cell_count=count, lengths=lengths, **parts)
