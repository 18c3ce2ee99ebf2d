"""Mesh files of all formats, and the reader of Wavefront OBJ.

MuJoCo reads OBJ, MSH and binary STL itself, and is left to do so where it reads all of a file: of an OBJ with several
groups it takes the faces of the first one only, and an STL must be binary with 200000 faces at most. COLLADA is read
here (`collada`), other formats by `trimesh`, an optional package.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.model.asset_files import check_file
from internutopia.model.meshes.collada import Color, read_collada
from internutopia.util.imports import install_hint

_GROUP = re.compile(rb'^[ \t]*[og]\s', re.MULTILINE)


@dataclass(frozen=True)
class ObjMesh:
    """`vertices` `(n, 3)`, `faces` `(m, 3)`; if all faces have texture coordinates, `texcoords` `(k, 2)`, `texfaces`.

    Texture coordinates count from the bottom, as in the file. `materials` are names in their order, empty where none is
    given; `face_materials` `(m,)` the number of each face's.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    texcoords: NDArray[np.float64] | None
    texfaces: NDArray[np.int32] | None
    materials: tuple[str, ...]
    face_materials: NDArray[np.intp]


def read_obj(data: bytes) -> ObjMesh:
    """Read the text of an OBJ file; polygons become fans. ValueError if it is broken or has no faces."""
    points: list[list[bytes]] = []
    texcoords: list[list[bytes]] = []
    faces: list[list[int]] = []
    texfaces: list[list[int]] = []
    materials: dict[bytes, int] = {}
    starts: list[tuple[int, int]] = []  # first faces of materials
    for line in data.splitlines():
        word, *values = line.split() or [b'']
        if word == b'v':
            points.append(values[:3])
        elif word == b'vt':
            texcoords.append(values[:2])
        elif word == b'usemtl':
            starts.append((len(faces), materials.setdefault(b' '.join(values), len(materials))))
        elif word == b'f':
            if not starts:
                starts.append((0, materials.setdefault(b'', 0)))
            corners = [corner.split(b'/') for corner in values]
            faces += _fan([_index(corner[0], len(points)) for corner in corners])
            texfaces += _fan([_index(corner[1], len(texcoords)) for corner in corners if len(corner) > 1 and corner[1]])
    vertices, triangles = np.array(points, float), np.array(faces, np.int32).reshape(-1, 3)
    if not faces or triangles.min() < 0 or triangles.max() >= len(vertices):
        raise ValueError('a face names a vertex that is not there' if faces else 'it has no triangles')
    names = tuple(name.decode(errors='replace') for name in materials)
    first, numbers = np.array(starts).T
    numbers = np.repeat(numbers, np.diff(first, append=len(faces)))
    if len(texfaces) != len(faces) or np.max(texfaces) >= len(texcoords):
        return ObjMesh(vertices, triangles, None, None, names, numbers)
    return ObjMesh(vertices, triangles, np.array(texcoords, float), np.array(texfaces, np.int32), names, numbers)


def _index(text: bytes, count: int) -> int:
    """Return an index counted from 0; negative ones in the file count from the last element before."""
    number = int(text)
    return number - 1 if number > 0 else count + number


def _fan(corners: list[int]) -> list[list[int]]:
    return [[corners[0], *corners[k : k + 2]] for k in range(1, len(corners) - 1)]


@dataclass(frozen=True)
class ObjMaterial:
    """Colour and image of a material, and the files that it is read from, images included."""

    color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    image: Path | None = None
    files: tuple[Path, ...] = ()


def obj_material(mesh: Path) -> ObjMaterial | None:
    """Return the material of most faces of an OBJ file, None if there is none, or no file of materials."""
    faces: Counter[str] = Counter()
    current = ''
    for word, rest in _lines(mesh):
        if word == 'usemtl':
            current = rest
        elif word == 'f':
            faces[current] += 1
    found = obj_materials(material_libraries(mesh))
    named = [found[name] for name, _ in faces.most_common() if name in found]
    return named[0] if named else None


def material_libraries(mesh: Path) -> list[Path]:
    """Return the files of materials that an OBJ file names, missing ones as well."""
    return [mesh.parent / rest for word, rest in _lines(mesh) if word == 'mtllib']


def obj_materials(libraries: Iterable[Path]) -> dict[str, ObjMaterial]:
    """Return the materials of some files by name; a file that is missing has none."""
    found: dict[str, ObjMaterial] = {}
    for library in libraries:
        if library.is_file():
            found |= _materials(library)
    return found


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Return the first word of each line of a file, and the rest."""
    check_file(file, 'text_size')
    for line in file.read_text(errors='replace').splitlines():
        word, _, rest = line.strip().partition(' ')
        yield word, rest.strip()


def _materials(library: Path) -> dict[str, ObjMaterial]:
    """Return materials by name: diffuse colour (Kd), opacity (d), image (map_Kd)."""
    found, name = {}, ''
    for word, rest in _lines(library):
        values = rest.split()
        if word == 'newmtl':
            name = rest
            found[name] = ObjMaterial(files=(library,))
            continue
        material = found.get(name)
        if material is None or not values:
            continue
        if word == 'Kd' and len(values) >= 3:
            r, g, b = map(float, values[:3])
            found[name] = ObjMaterial((r, g, b, material.color[3]), material.image, material.files)
        elif word == 'd':
            found[name] = ObjMaterial((*material.color[:3], float(values[-1])), material.image, material.files)
        elif word == 'map_Kd':
            image = library.parent / values[-1].replace('\\', '/')  # options come before the name
            if image.is_file():
                found[name] = ObjMaterial(material.color, image, (library, image))
    return found


_TEXT = ('.obj', '.dae', '.gltf')
_STL_HEADER = 84  # bytes, the number of faces are the last four
_STL_FACE = np.dtype([('normal', '<f4', 3), ('corners', '<f4', (3, 3)), ('attribute', '<u2')])
_STL_CORNER = re.compile(rb'vertex\s+(\S+)\s+(\S+)\s+(\S+)', re.IGNORECASE)
_PLY_FACES, _PLY_HEADER = re.compile(rb'ply\s.*?\nelement face (\d{1,18})\s', re.DOTALL), 65536  # bytes
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
        if len(_GROUP.findall(data)) > 1:  # more than one group or object
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
        vertices, triangles, color = read_collada(file)
        _set_triangles(mesh, vertices, triangles)
        return color
    elif suffix != '.msh':
        fill_with_trimesh(mesh, file)
    return None


def fill_with_trimesh(mesh: mujoco.MjsMesh, file: Path) -> None:
    """Do as `fill_mesh`, read by trimesh. ValueError if it cannot be read or has no triangles."""
    loaded = read_with_trimesh(file)
    _set_triangles(mesh, loaded.vertices, loaded.faces)


def read_with_trimesh(file: Path) -> Any:
    """Return a `trimesh.Trimesh` in metres. ValueError if it cannot be read, has no triangles or is cut off."""
    try:
        import trimesh

        loaded = _read_ply(file) if file.suffix.lower() == '.ply' else trimesh.load_mesh(file)
        if loaded.units:
            loaded.apply_scale(trimesh.units.unit_conversion(loaded.units, 'meters'))
        count = len(loaded.faces)
    except ImportError as error:
        raise ValueError(f'{error}; {install_hint("geometry")} may help') from error
    except Exception as error:  # its many readers raise errors of any type
        raise ValueError(str(error) or type(error).__name__) from error
    if not count:
        raise ValueError('it has no triangles')
    with file.open('rb') as opened:  # of text, trimesh reads as many lines as there are
        announced = _PLY_FACES.match(opened.read(_PLY_HEADER))
    if announced is not None and count < int(announced[1]):
        raise ValueError(f'its header announces {int(announced[1])} faces, and {count} triangles can be read')
    return loaded


def _read_ply(file: Path) -> Any:
    """Return a PLY file as a `trimesh.Trimesh`, whose colours of quads are those of both triangles of each."""
    import trimesh
    from trimesh.exchange.ply import load_ply
    from trimesh.resolvers import FilePathResolver

    with file.open('rb') as opened:
        try:
            parts = load_ply(opened, resolver=FilePathResolver(str(file)))
        except ValueError as error:
            if 'unexpected length' not in str(error):
                raise
            raise ValueError('it is cut off, or binary with faces of different numbers of corners') from error
    faces, colors = parts.get('faces', ()), parts.get('face_colors')
    if colors is not None and np.shape(faces) == (len(colors), 4):
        parts['face_colors'] = np.tile(colors, (2, 1))  # trimesh puts second triangles after all first ones
    elif colors is not None and len(faces) != len(colors):
        raise ValueError('it has colours of faces with different numbers of corners; all must be triangles or quads')
    return trimesh.Trimesh(**parts) if len(faces) else trimesh.Trimesh()


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
