"""OBJ files: triangles of all groups, of which MuJoCo reads the first only, and materials, which it does not read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_files import check_file

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


def has_groups(data: bytes) -> bool:
    """Return True if the text of an OBJ file begins more than one group or object."""
    return len(_GROUP.findall(data)) > 1


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
