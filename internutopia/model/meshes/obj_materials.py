"""Materials of OBJ meshes, which MuJoCo does not read, other than their texture coordinates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from internutopia.model.asset_bounds import check_file


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
