"""Files of other formats as stages of USD in memory: glTF, meshes, scenes of Habitat.

So they have all that stages have: colliders, materials, labels, bounds, a cache. `usd.composition` opens them as it
opens files of USD. glTF and Habitat are in metres with y up; OBJ, PLY and STL files, which say neither, are taken in
metres with z up.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from internutopia.model.asset_files import reading
from internutopia.model.asset_paths import model_suffix
from internutopia.model.importers.as_usd import gltf, habitat, mesh_file
from internutopia.model.importers.as_usd.writer import StageWriter, files_of, warnings_of

if TYPE_CHECKING:
    from pxr import Usd

__all__ = ['as_stage', 'files_of', 'warnings_of']

_GLTF = ('.gltf', '.glb')
_MESHES = ('.obj', '.stl', '.ply')
_HABITAT = (habitat.SCENE, habitat.STAGE, habitat.OBJECT)


def as_stage(path: Path) -> Usd.Stage | None:
    """Return a file as a stage; None if it is one of USD. ValueError if it is broken, or names what is not there."""
    suffix = model_suffix(path)
    if suffix in _HABITAT:
        writer = StageWriter(path, 'Y')
        habitat.write(path, writer, _asset)
        return writer.finish()
    return _asset(path, 'Y' if suffix in _GLTF else 'Z') if suffix in (*_GLTF, *_MESHES) else None


def _asset(path: Path, up: Literal['Y', 'Z'] = 'Y') -> Usd.Stage:
    """Return a mesh file as a stage."""
    path = Path(os.path.normpath(path))
    suffix = model_suffix(path)
    if suffix not in (*_GLTF, *_MESHES):
        raise ValueError(f'{path}: the suffix of an asset must be one of {", ".join((*_GLTF, *_MESHES))}')
    if not path.is_file():
        raise ValueError(f'{path} does not exist')
    writer = StageWriter(path, up)
    with reading(path):
        (gltf if suffix in _GLTF else mesh_file).write(path, writer)
    return writer.finish()
