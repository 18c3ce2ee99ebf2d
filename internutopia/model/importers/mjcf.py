"""MJCF: MuJoCo reads its own format in full; here only its files are listed, and bounded before it reads them.

Files of a model are includes, attached models and assets. MuJoCo's reader crashes or takes forever on models that
attach themselves, on counts in the millions and on images and height fields of gigabytes.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree.ElementTree import Element

import mujoco

from internutopia.model.asset_files import check_bound, check_file, read_xml
from internutopia.model.meshes.images import check_png

_MOST_ATTACHED = 50  # models inside each other; MuJoCo's reader calls itself for each, and runs out of stack
_CUBE_SIDES = 6
_WITH_FIGURES = ('hfield', 'texture', 'mesh', 'size')


def load(path: Path) -> mujoco.MjSpec:
    """Read an MJCF file at an absolute path. ValueError if it is broken or a file it refers to is missing."""
    spec = mujoco.MjSpec.from_file(str(path))
    total_mass, spec.compiler.settotalmass = spec.compiler.settotalmass, -1.0  # deprecated, and lost when attached
    compiled = spec.copy().compile()  # most errors (sizes, names, missing meshes) show up only here
    if total_mass > 0.0:
        mujoco.mj_setTotalmass(compiled, total_mass)
        _set_inertias(spec, compiled)
    return spec


def _set_inertias(spec: mujoco.MjSpec, compiled: mujoco.MjModel) -> None:
    """Give bodies the masses and inertias that they have in a compiled model."""
    for body in spec.bodies[1:]:
        index = compiled.body(body.name).id if body.name else body.id
        body.explicitinertial = True
        body.mass, body.inertia = compiled.body_mass[index], compiled.body_inertia[index]
        body.ipos, body.iquat = compiled.body_ipos[index], compiled.body_iquat[index]
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE


def dependencies(path: Path) -> set[Path]:
    """Return the file itself and all that it refers to: includes, models, meshes, textures, height fields, skins.

    ValueError as `read_mjcf`.
    """
    models = read_mjcf(path)
    documents = {document for model in models.values() for document in model.documents}
    return documents | {file for model in models.values() for _, file in model.references}


@dataclass
class MjcfFile:
    """A main file with its includes, which are relative to its folder or their own."""

    path: Path
    documents: dict[Path, Element]
    """Root elements by file, the main one first."""

    @cached_property
    def folders(self) -> set[Path]:
        """Folders of meshes and textures: that of the main file, and those that a `<compiler>` names."""
        compilers = [compiler for root in self.documents.values() for compiler in root.iter('compiler')]
        names = {compiler.get(key, '') for compiler in compilers for key in ('meshdir', 'texturedir', 'assetdir')}
        return {self.path.parent / name for name in names | {''}}

    @cached_property
    def _named(self) -> list[tuple[Element, str]]:
        """Elements that name files, except for includes, with each name."""
        return [
            (element, value)
            for root in self.documents.values()
            for element in root.iter()
            if element.tag != 'include'
            for key, value in element.attrib.items()
            if key.startswith('file')  # `fileright` etc. of cube textures, too
        ]

    @cached_property
    def references(self) -> list[tuple[Element, Path]]:
        """Elements that refer to files, except for includes, with each file that may be meant."""
        return [(element, file) for element, name in self._named for file in _candidates(name, self.folders)]

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Kind of element and name of each reference that is found in no folder, includes as well."""
        includes = [
            (include, include.get('file', ''), {self.path.parent, document.parent})
            for document, root in self.documents.items()
            for include in root.iter('include')
        ]
        named = [*includes, *((element, name, self.folders) for element, name in self._named)]
        return list(dict.fromkeys((e.tag, name) for e, name, folders in named if not _candidates(name, folders)))


def read_mjcf(path: Path) -> dict[Path, MjcfFile]:
    """Read a file and the models that it attaches; returns them by path, the file itself first.

    A reference is searched in every folder that it may be relative to; one that is found in none is left out.

    Raises:
        ValueError: One of them is not XML, no regular file, attaches itself, or is too large.
    """
    files: dict[Path, MjcfFile] = {}
    pending = [path]
    while pending:
        file = pending.pop()
        if file in files:
            continue
        files[file] = MjcfFile(file, _documents(file))
        for element, referred in files[file].references:
            if element.tag == 'model':
                pending.append(referred)
            else:
                check_file(referred)
                if element.tag in ('texture', 'hfield'):
                    check_png(referred)
    _Sizes(files).check(path)
    return files


def _documents(path: Path) -> dict[Path, Element]:
    documents: dict[Path, Element] = {}
    pending = [path]
    while pending:
        document = pending.pop()
        if document in documents:
            continue
        root = documents[document] = read_xml(document)
        for include in root.iter('include'):
            pending += _candidates(include.get('file', ''), {path.parent, document.parent})
    return documents


def _candidates(reference: str, folders: set[Path]) -> list[Path]:
    """Return the files that a reference may mean; with `strippath`, only its last part counts."""
    places = {folder / name for folder in folders for name in (reference, os.path.basename(reference))}
    return [Path(os.path.normpath(place)) for place in places if place.exists() and not place.is_dir()]


class _Sizes:
    """Number of elements that each file expands to, with all copies that MuJoCo replicates and attaches."""

    def __init__(self, files: dict[Path, MjcfFile]):
        self._files = files
        self._known: dict[Path, float] = {}
        self._written = sum(sum(1 for _ in root.iter()) for file in files.values() for root in file.documents.values())

    def check(self, path: Path) -> None:
        """Raise ValueError if a file and the models it attaches become too large."""
        total = self._of(path, ())
        check_bound(path, 'copies of elements', total - self._written, 'copies')

    def _of(self, path: Path, above: tuple[Path, ...]) -> float:
        if path in above:
            circle = ' -> '.join(file.name for file in (*above[above.index(path) :], path))
            raise ValueError(f'{path}: the model attaches itself ({circle})')
        if len(above) > _MOST_ATTACHED:
            raise ValueError(f'{above[0]}: more than {_MOST_ATTACHED} models are attached inside each other')
        if path not in self._known:
            self._known[path] = self._count(self._files[path], (*above, path))
        return self._known[path]

    def _count(self, file: MjcfFile, above: tuple[Path, ...]) -> float:
        models: dict[str, float] = {}
        for element, referred in file.references:
            if element.tag == 'model':
                name = element.get('name', '')
                models[name] = models.get(name, 0.0) + self._of(referred, above)
        largest = max(models.values(), default=0.0)  # of what is attached by a name that is not written here
        total = sum(models.values())  # each is read, attached or not
        included = {file.path}
        pending = [(file.documents[file.path], 1.0)]
        while pending:
            element, copies = pending.pop()
            total += copies
            if element.tag == 'attach':
                total += copies * models.get(element.get('model', ''), largest)
            elif element.tag == 'include':
                found = _candidates(element.get('file', ''), {file.path.parent, *(d.parent for d in included)})
                pending += [(file.documents[f], copies) for f in found if f in file.documents and f not in included]
                included.update(found)
            elif element.tag == 'replicate':
                copies *= max(_product(element, 'count'), 1.0)
            elif element.tag == 'flexcomp':
                total += copies * _product(element, 'count')
            pending += [(child, copies) for child in element]
        for root in file.documents.values():
            for kind in _WITH_FIGURES:
                for element in root.iter(kind):
                    _check_figures(file.path, element, total)
        return total


def _check_figures(path: Path, element: Element, elements: float) -> None:
    """Raise ValueError for an element with too many pixels, points or numbers."""
    kind, name = element.tag, f'<{element.tag} name="{element.get("name", "")}">'
    if kind == 'hfield':
        points = _product(element, 'nrow') * _product(element, 'ncol')
        check_bound(path, f'points in {name}', points, 'pixels')
    elif kind == 'texture':
        sides = 1 if element.get('type') == '2d' else _CUBE_SIDES
        width, height = _product(element, 'width'), _product(element, 'height')
        check_bound(path, f'pixels in {name}', sides * width * max(height, 1.0), 'pixels')
    elif kind == 'mesh' and 'builtin' in element.attrib:
        resolution = max(_numbers(element, 'params'), default=0.0)
        check_bound(path, f'points in {name}', resolution**2, 'pixels')
    elif kind == 'size':
        for key in element.keys():
            # there is as much of it for each element
            each = elements if key == 'nkey' or key.startswith('nuser_') else float(key == 'nuserdata')
            check_bound(path, f'numbers by <size {key}>', _product(element, key) * each, 'pixels')


def _product(element: Element, key: str) -> float:
    return math.prod(_numbers(element, key))


def _numbers(element: Element, key: str) -> list[float]:
    """Return positive numbers of an attribute; others count as 0, for MuJoCo to report."""
    try:
        return [max(float(word), 0.0) for word in element.get(key, '0').split()]
    except ValueError:
        return [0.0]
