"""OBJ files: triangles of all groups, of which MuJoCo reads the first only, and materials, which it does not read."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_files import check_file

_GROUP = re.compile(rb'^[ \t]*[og]\s', re.MULTILINE)


@dataclass(frozen=True)
class ObjMesh:
    """`vertices` `(n, 3)`, `faces` `(m, 3)`; if all faces have texture coordinates, `texcoords` `(k, 2)`, `texfaces`.

    Texture coordinates count from the bottom, as in the file.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    texcoords: NDArray[np.float64] | None
    texfaces: NDArray[np.int32] | None


def has_groups(data: bytes) -> bool:
    """Return True if the text of an OBJ file begins more than one group or object."""
    return len(_GROUP.findall(data)) > 1


def read_obj(data: bytes) -> ObjMesh:
    """Read the text of an OBJ file; polygons become fans. ValueError if it is broken or has no faces."""
    points: list[list[bytes]] = []
    texcoords: list[list[bytes]] = []
    faces: list[list[int]] = []
    texfaces: list[list[int]] = []
    for line in data.splitlines():
        word, *values = line.split() or [b'']
        if word == b'v':
            points.append(values[:3])
        elif word == b'vt':
            texcoords.append(values[:2])
        elif word == b'f':
            corners = [corner.split(b'/') for corner in values]
            faces += _fan([_index(corner[0], len(points)) for corner in corners])
            texfaces += _fan([_index(corner[1], len(texcoords)) for corner in corners if len(corner) > 1 and corner[1]])
    vertices, triangles = np.array(points, float), np.array(faces, np.int32).reshape(-1, 3)
    if not faces or triangles.min() < 0 or triangles.max() >= len(vertices):
        raise ValueError('a face names a vertex that is not there' if faces else 'it has no triangles')
    if len(texfaces) != len(faces) or np.max(texfaces) >= len(texcoords):
        return ObjMesh(vertices, triangles, None, None)
    return ObjMesh(vertices, triangles, np.array(texcoords, float), np.array(texfaces, np.int32))


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
    check_file(mesh, 'text_size')
    faces: Counter[str] = Counter()
    libraries, current = [], ''
    for line in mesh.read_text(errors='replace').splitlines():
        word, _, rest = line.strip().partition(' ')
        if word == 'mtllib':
            libraries.append(mesh.parent / rest.strip())
        elif word == 'usemtl':
            current = rest.strip()
        elif word == 'f':
            faces[current] += 1
    found = {}
    for library in libraries:
        if library.is_file():
            found |= _materials(library)
    named = [found[name] for name, _ in faces.most_common() if name in found]
    return named[0] if named else None


def _materials(library: Path) -> dict[str, ObjMaterial]:
    """Return materials by name: diffuse colour (Kd), opacity (d), image (map_Kd)."""
    check_file(library, 'text_size')
    found, name = {}, ''
    for line in library.read_text(errors='replace').splitlines():
        word, _, rest = line.strip().partition(' ')
        values = rest.split()
        if word == 'newmtl':
            name = rest.strip()
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
