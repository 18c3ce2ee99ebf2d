"""URDF, as robot descriptions use it: an XML file and meshes -> `MjSpec`.

The file is read here, not by MuJoCo, whose reader puts all shapes into the masses, confuses meshes of one name, and
stops at files that others read.

- Every link is its own body, fixed ones included. The root link is a body under the world body; whether it
  floats is not decided here. A root link called `world` becomes `WORLD_LINK` (unless a floating joint hangs on it: then
  the link below is the root, with a free joint).
- Joints of all types of URDF, and Bullet's `spherical`. `planar` is two slides and a hinge, called `<joint>_TX`, `_TY`,
  `_RZ`; `floating` that is not right below the world three slides and a ball, `_TX`, `_TY`, `_TZ`, `_R`. Limits without
  room are left out; mimic joints become joint equality constraints, effort limits `actuatorfrcrange` (0 is none),
  dynamics damping and frictionloss.
- Visual geoms are in group 2 and collide with nothing; collision geoms of a link that has visuals are in group 3, which
  is not drawn by default. A visual whose link has no colour gets that of its OBJ or COLLADA file: of the material that
  most faces have.
- Files: `meshes`. Formats of meshes: `internutopia.model.meshes.mesh_files`. Masses: `build`.
- A `<mujoco>` element gives MuJoCo's `compiler`, `option` and `size`; what the compiler does about files, angles and
  fusing links is decided here.
- What is wrong or cannot be represented is logged as a warning, what has no meaning here (velocity limits, `<gazebo>`,
  `<transmission>`, ...) as information, each once for a file.
"""

from __future__ import annotations

from pathlib import Path

import mujoco

from internutopia.model.importers.urdf.build import (
    WORLD_LINK,
    add_links,
    empty_spec,
    group_geoms,
    set_masses,
    spread_masses,
)
from internutopia.model.importers.urdf.meshes import Meshes, find
from internutopia.model.importers.urdf.reader import read_document
from internutopia.model.meshes.mesh_files import obj_material
from internutopia.util import log

__all__ = ['WORLD_LINK', 'dependencies', 'load']


def load(path: Path) -> mujoco.MjSpec:
    """Read a URDF file at an absolute path. ValueError if it is broken, or nothing of it can be found."""
    document = read_document(path)
    spec = empty_spec(document)
    meshes = Meshes(document, spec)
    bodies = add_links(document, spec, meshes)
    meshes.warn_of_missing()
    set_masses(document, spec, bodies)
    meshes.remove_broken()
    spread_masses(document, spec, bodies)
    group_geoms(spec)
    for warning in document.warnings.lines():
        log.warning('%s: %s', path, warning)
    if document.unread:
        log.info('%s: not read: %s', path, ', '.join(f'{what} ({count})' for what, count in document.unread.items()))
    return spec


def dependencies(path: Path) -> set[Path]:
    """Return the file, its meshes and their materials, and candidate paths of missing meshes. ValueError as `load`."""
    document = read_document(path)
    files = {path}
    for reference in {shape.mesh for link in document.links.values() for shape in link.shapes if shape.mesh}:
        file, tried = find(document, reference)
        files |= {file} if file else set(tried)
    materials = (obj_material(file) for file in files if file.suffix.lower() == '.obj' and file.is_file())
    return files | {file for material in materials if material for file in material.files}
