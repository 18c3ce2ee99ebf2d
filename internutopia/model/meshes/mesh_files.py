"""Mesh files of any format as meshes of a spec, and their faults.

MuJoCo reads OBJ, MSH and binary STL itself, and is left to do so where it reads all of a file: of an OBJ with several
groups it takes the faces of the first one only, and an STL must be binary with 200000 faces at most. COLLADA is read
here (`collada`), other formats by `trimesh`, an optional package.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.model.asset_files import check_file
from internutopia.model.meshes.collada import Color, read_collada
from internutopia.model.meshes.obj import has_groups, read_obj
from internutopia.util.imports import install_hint

_TEXT = ('.obj', '.dae', '.gltf')
_STL_HEADER = 84  # bytes, the number of faces are the last four
_STL_FACE = np.dtype([('normal', '<f4', 3), ('corners', '<f4', (3, 3)), ('attribute', '<u2')])
_STL_CORNER = re.compile(rb'vertex\s+(\S+)\s+(\S+)\s+(\S+)', re.IGNORECASE)
_MOST_STL_FACES = 200000  # that MuJoCo reads


def fill_mesh(mesh: mujoco.MjsMesh, file: Path) -> Color | None:
    """Give a mesh of a spec the content of a file.

    Returns:
        The colour that most of it has, where the format is one whose colours are read here.

    Raises:
        ValueError: The file cannot be read, or has no triangles. For files that MuJoCo reads, that shows only when the
            spec is compiled.
        OSError: The file cannot be opened.
    """
    suffix = file.suffix.lower()
    check_file(file, 'text_size' if suffix in _TEXT else 'file_size')
    mesh.file = str(file)
    if suffix == '.obj':
        data = file.read_bytes()
        if has_groups(data):
            obj = read_obj(data)
            _set_triangles(mesh, obj.vertices, obj.faces)
            if obj.texcoords is not None and obj.texfaces is not None:
                # MuJoCo's images count from the top
                mesh.usertexcoord = np.column_stack([obj.texcoords[:, 0], 1.0 - obj.texcoords[:, 1]]).ravel()
                mesh.userfacetexcoord = obj.texfaces.ravel()
    elif suffix == '.stl':
        data = file.read_bytes()
        faces = _stl_faces(data)
        if faces is None or not 0 < faces <= _MOST_STL_FACES or len(data) != _STL_HEADER + faces * _STL_FACE.itemsize:
            _set_triangles(mesh, *read_stl(data))
    elif suffix == '.dae':
        collada = read_collada(file)
        _set_triangles(mesh, collada.vertices, collada.faces)
        return collada.color
    elif suffix != '.msh':
        fill_with_trimesh(mesh, file)
    return None


def fill_with_trimesh(mesh: mujoco.MjsMesh, file: Path) -> None:
    """Do as `fill_mesh`, read by trimesh. ValueError if it cannot be read or has no triangles."""
    loaded = read_with_trimesh(file)
    _set_triangles(mesh, loaded.vertices, loaded.faces)


def read_with_trimesh(file: Path) -> Any:
    """Return a `trimesh.Trimesh` in metres. ValueError if it cannot be read or has no triangles."""
    try:
        import trimesh

        loaded = trimesh.load_mesh(file)
        if loaded.units:
            loaded.apply_scale(trimesh.units.unit_conversion(loaded.units, 'meters'))
        count = len(loaded.faces)
    except ImportError as error:
        raise ValueError(f'{error}; {install_hint("geometry")} may help') from error
    except Exception as error:  # its many readers raise errors of any type
        raise ValueError(str(error) or type(error).__name__) from error
    if not count:
        raise ValueError('it has no triangles')
    return loaded


def _set_triangles(mesh: mujoco.MjsMesh, vertices: NDArray[np.float64], faces: ArrayLike) -> None:
    mesh.file = ''
    mesh.uservert, mesh.userface = vertices.ravel(), np.asarray(faces, np.int32).ravel()


def _stl_faces(data: bytes) -> int | None:
    """Return the number of faces of a binary STL, None for one that is text."""
    if len(data) < _STL_HEADER:
        return None
    count = int.from_bytes(data[_STL_HEADER - 4 : _STL_HEADER], 'little')
    return count if _STL_HEADER + count * _STL_FACE.itemsize <= len(data) else None


def read_stl(data: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices, merged where they coincide, and faces of an STL. ValueError if it has none, or is cut off."""
    count = _stl_faces(data)
    if count is not None:
        corners = np.frombuffer(data, _STL_FACE, count, _STL_HEADER)['corners'].reshape(-1, 3)
    else:
        corners = np.array(_STL_CORNER.findall(data), float).reshape(-1, 3)
    if not len(corners) or len(corners) % 3:
        raise ValueError('it has no triangles' if not len(corners) else 'it ends within a triangle')
    vertices, faces = np.unique(corners, axis=0, return_inverse=True)
    return vertices.astype(float), faces.reshape(-1, 3)


def fault_of(mesh: mujoco.MjsMesh) -> str:
    """Return why a mesh cannot be compiled, as something that collides if it has the inertia of its hull."""
    probe = mujoco.MjSpec()
    alone = probe.add_mesh(name=mesh.name, file=mesh.file, scale=mesh.scale, inertia=mesh.inertia)
    alone.uservert, alone.userface = mesh.uservert, mesh.userface  # normals and texture coordinates do not matter
    geom = probe.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=mesh.name)
    geom.contype = geom.conaffinity = int(mesh.inertia == mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
    try:
        probe.compile()
    except ValueError as error:
        reason, _, _advice = str(error).splitlines()[0].removeprefix('Error: ').partition('. ')
        return reason.replace(f" '{mesh.name}'", '').replace(f': {mesh.name}', '').strip()
    return ''
