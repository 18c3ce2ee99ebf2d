"""Files that a URDF refers to, and its meshes in the spec; missing or unreadable ones are left out with a warning.

- A path without a scheme is relative to the URDF's folder, or to that with the `meshdir` of a `<mujoco><compiler>`, or
  to a folder above it. With `strippath` only its last part counts.
- `package://name/...` and `model://name/...`: the folder `name` next to or above the file, or in `ROS_PACKAGE_PATH`,
  `AMENT_PREFIX_PATH`, `GAZEBO_MODEL_PATH` or `GZ_SIM_RESOURCE_PATH`; at last the folders above the file, as if they
  were the package, which may have been renamed.
- `file://` is an absolute path.

Upper and lower case of the file's name need not agree.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import mujoco

from internutopia.model.asset_files import BROKEN, check_file
from internutopia.model.importers.urdf.document import Document, Numbers, Shape
from internutopia.model.meshes.images import add_texture, decode_image
from internutopia.model.meshes.mesh_files import ObjMaterial, fault_of, fill_mesh, fill_with_trimesh, obj_material

_PACKAGES = ('package', 'model')
_SEARCHED = ('ROS_PACKAGE_PATH', 'AMENT_PREFIX_PATH', 'GAZEBO_MODEL_PATH', 'GZ_SIM_RESOURCE_PATH')
_MISSING = 'left out meshes that are not found beside or above the file, or in ROS_PACKAGE_PATH'
_PLACES_SHOWN = 6
_CONVEX, _SHELL = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX, mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL


def find(document: Document, reference: str) -> tuple[Path | None, list[Path]]:
    """Find the file that a reference means, None if there is none; also returns the places that were searched."""
    tried: list[Path] = []
    for place in dict.fromkeys(_places(document, reference.strip().replace('\\', '/'))):
        tried.append(place)
        file = _spelled(place)
        if file is not None:
            return file, tried
    return None, tried


def _spelled(place: Path) -> Path | None:
    """Return a file, whatever the case of its name."""
    if place.is_file():
        return place
    try:
        return next((file for file in place.parent.iterdir() if file.name.lower() == place.name.lower()), None)
    except OSError:
        return None


def _places(document: Document, reference: str) -> Iterator[Path]:
    scheme, separator, rest = reference.partition('://')
    folders = document.path.parents
    if separator and scheme in _PACKAGES:
        name, _, inside = rest.lstrip('/').partition('/')
        yield from (folder / name / inside for folder in folders)
        entries = (entry for variable in _SEARCHED for entry in os.environ.get(variable, '').split(os.pathsep))
        for folder in map(Path, filter(None, entries)):
            # the folder of packages, the package itself, or an installation
            yield from (folder / name / inside, folder.parent / name / inside, folder / 'share' / name / inside)
        yield from (folder / inside for folder in folders)
        return
    compiler = document.settings.find('compiler') if document.settings is not None else None
    settings = compiler.attrib if compiler is not None else {}
    name = rest if separator else reference
    if settings.get('strippath') == 'true':
        name = os.path.basename(name)
    for place in (folders[0] / settings.get('meshdir', '') / name, *(folder / name for folder in folders)):
        yield Path(os.path.normpath(place))


class Meshes:
    """The meshes of one spec; a file is read once for each scale that it is used with."""

    def __init__(self, document: Document, spec: mujoco.MjSpec) -> None:
        self._document, self._spec = document, spec
        self._names: dict[tuple[Path, Numbers], str | None] = {}
        self._files: dict[str, Path] = {}
        self._meshes: dict[str, mujoco.MjsMesh] = {}
        self._materials: dict[str, ObjMaterial | None] = {}
        self._textured = set[str]()
        self._missing: list[tuple[str, str]] = []  # link, reference

    def add(self, link: str, shape: Shape) -> str | None:
        """Add the mesh of a shape; returns its name, None if it is left out."""
        file, _ = find(self._document, shape.mesh)
        if file is None:
            self._missing.append((link, shape.mesh))
            return None
        key = file, shape.size
        if key not in self._names:
            self._names[key] = self._read(file, shape.size)
        name = self._names[key]
        if name is not None and shape.collides:  # visuals may be open, and have no volume
            self._meshes[name].inertia = _CONVEX
        return name

    def warn_of_missing(self) -> None:
        """Warn of meshes that were not found. ValueError if neither a shape nor a mass is left without them."""
        document = self._document
        if not self._missing:
            return
        if not self._spec.geoms and not any(link.mass for link in document.links.values()):
            link, reference = self._missing[0]
            _, tried = find(document, reference)
            places = ''.join(f'\n  {place}' for place in tried[:_PLACES_SHOWN])
            rest = f'\n  and {len(tried) - _PLACES_SHOWN} more' if len(tried) > _PLACES_SHOWN else ''
            raise ValueError(
                f'link {link!r}: mesh {reference!r} not found, and nothing else has a shape; tried:{places}{rest}'
            )
        what = _MISSING if self._spec.geoms else f'no shape is left; {_MISSING}'
        for link, reference in self._missing:
            document.warnings.add(what, f'{reference!r} (link {link!r})')

    def set_appearance(self, geom: mujoco.MjsGeom) -> None:
        """Give a geom the colour and image that its mesh has by itself."""
        name = geom.meshname
        if name not in self._materials:
            self._materials[name] = obj_material(self._files[name])
        material = self._materials[name]
        if material is None:
            return
        geom.rgba = material.color
        if material.image is not None and self._texture(name, material.image):
            geom.material = name

    def remove_broken(self) -> None:
        """Read meshes that MuJoCo cannot compile in another way, or take out the geoms that use them.

        Raises:
            ValueError: MuJoCo cannot compile the spec, and that is not for its meshes.
        """
        try:
            self._spec.copy().compile()
        except ValueError as error:
            broken = [(name, fault) for name, mesh in self._meshes.items() if (fault := fault_of(mesh))]
            if not broken:
                raise
            for name, fault in broken:
                self._repair(name, fault)
            try:
                self._spec.copy().compile()
            except ValueError as second:
                raise second from error

    def _read(self, file: Path, scale: Numbers) -> str | None:
        names = (f'{file.stem}_{n}' if n else file.stem for n in itertools.count())
        name = next(name for name in names if name not in self._files)
        mesh = self._spec.add_mesh(name=name, scale=scale, inertia=_SHELL)
        try:
            color = fill_mesh(mesh, file)
        except (*BROKEN, OSError) as error:
            reason = str(error).removeprefix(f'{file}: ')
            self._document.warnings.add('left out meshes', f'{file} ({reason})')
            self._spec.delete(mesh)
            return None
        self._meshes[name], self._files[name] = mesh, file
        if file.suffix.lower() != '.obj':
            self._materials[name] = ObjMaterial(color) if color else None
        return name

    def _texture(self, name: str, image: Path) -> bool:
        if name in self._textured:
            return True
        try:
            check_file(image)
            add_texture(self._spec, name, decode_image(image.read_bytes()))
        except (ValueError, OSError) as error:
            self._document.warnings.add('left out images', f'{image} ({error})')
            return False
        material = self._spec.add_material(name=name)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
        self._textured.add(name)
        return True

    def _geoms(self, name: str) -> list[mujoco.MjsGeom]:
        return [geom for geom in self._spec.geoms if geom.meshname == name]

    def _repair(self, name: str, fault: str) -> None:
        file, mesh = self._files[name], self._meshes[name]
        if mesh.file:
            try:
                fill_with_trimesh(mesh, file)
            except ValueError:
                pass
            if not fault_of(mesh):
                return
        shown = [geom for geom in self._geoms(name) if not geom.contype]
        if shown and mesh.inertia == _CONVEX:
            mesh.inertia = _SHELL
            if not fault_of(mesh):
                for geom in self._geoms(name):
                    if geom.contype:
                        self._spec.delete(geom)
                self._document.warnings.add('left out meshes as colliders', f'{file} ({fault})')
                return
        for geom in self._geoms(name):
            self._spec.delete(geom)
        self._spec.delete(mesh)
        self._document.warnings.add('left out meshes', f'{file} ({fault})')
