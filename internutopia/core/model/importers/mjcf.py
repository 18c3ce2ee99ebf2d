"""MJCF: MuJoCo reads its own format in full; here only the error messages and the list of files are added."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import mujoco


def load(path: Path) -> mujoco.MjSpec:
    """Read an MJCF file at an absolute path. ValueError if it is broken or a file it refers to is missing."""
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        spec.copy().compile()  # most errors (sizes, names, missing meshes) show up only here
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from error
    return spec


def dependencies(path: Path) -> set[Path]:
    """The file itself and all that it refers to: includes, models, meshes, textures, height fields, skins.

    A reference is looked for in every folder that it may be relative to; one that is found in none is left out. Raises
    ValueError for a file that is not XML.
    """
    files: set[Path] = set()
    models = [path]
    while models:
        model = models.pop()
        if model in files:
            continue
        documents = _documents(model)
        files.update(documents)
        folders = _asset_folders(model.parent, documents.values())
        for root in documents.values():
            for element in root.iter():
                found = {
                    file
                    for key, value in element.items()
                    if key.startswith('file')  # `fileright` etc. of cube textures, too
                    for file in _candidates(value, folders)
                }
                if element.tag == 'model':
                    models += found
                elif element.tag != 'include':
                    files |= found
    return files


def _documents(path: Path) -> dict[Path, Element]:
    """The root elements of a file and of its includes; these are relative to the folder of the main file."""
    documents: dict[Path, Element] = {}
    pending = [path]
    while pending:
        document = pending.pop()
        if document in documents:
            continue
        try:
            root = documents[document] = ElementTree.parse(document).getroot()
        except ElementTree.ParseError as error:
            raise ValueError(f'{document}: not an XML document: {error}') from error
        for include in root.iter('include'):
            pending += _candidates(include.get('file', ''), {path.parent, document.parent})
    return documents


def _asset_folders(folder: Path, roots: Iterable[Element]) -> set[Path]:
    """Where meshes and textures may be: beside the main file or in a folder that a `<compiler>` names."""
    compilers = [compiler for root in roots for compiler in root.iter('compiler')]
    names = {compiler.get(key, '') for compiler in compilers for key in ('meshdir', 'texturedir', 'assetdir')}
    return {folder / name for name in names | {''}}


def _candidates(reference: str, folders: set[Path]) -> list[Path]:
    """Files that a reference may mean; with `strippath`, only its last part counts."""
    places = {folder / name for folder in folders for name in (reference, os.path.basename(reference))}
    return [Path(os.path.normpath(place)) for place in places if place.is_file()]
