"""Semantics of prims: labels of things -> custom texts, as `internutopia.model.semantics` reads them.

Both forms are read, whether the schema is applied or not: `semantic:<instance>:params:semanticType` with
`semanticData` (Omniverse's SemanticsAPI), and `semantics:labels:<taxonomy>` (OpenUSD's `UsdSemanticsLabelsAPI`). A prim
with the same labels as the one above it is a part of it. In scenes of GRScenes every prim of a model has the label
`<category>/model_<hash>_<n>`: then the class is the category, and the thing is the prim of that name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import mujoco

from internutopia.model.importers import FileWarnings
from internutopia.model.semantics import PREFIX

if TYPE_CHECKING:
    from pxr import Sdf, Usd

_OLD = re.compile(r'semantic:(.+):params:semanticType')
_NEW = 'semantics:labels:'
_MODEL = re.compile(r'(?P<category>.+)/(?P<model>model_[^/]+)')


def add_labels(spec: mujoco.MjSpec, prims: Iterable[Usd.Prim], warnings: FileWarnings) -> None:
    """Add a text for each labelled thing; `prims` are all of the stage, parents first."""
    in_force: dict[Sdf.Path, dict[str, str]] = {}  # at each prim: its labels, or else those of the nearest one above it
    texts: dict[str, str] = {}
    for prim in prims:
        path = prim.GetPath()
        above = in_force.get(path.GetParentPath(), {})
        own = in_force[path] = _labels(prim, warnings) or above
        if own != above:
            place, semantics = _thing(path, own)
            texts.setdefault(place, json.dumps(semantics))
    for path, text in texts.items():
        spec.add_text(name=PREFIX + path, data=text)


def _labels(prim: Usd.Prim, warnings: FileWarnings) -> dict[str, str]:
    """Return the labels on a prim itself, by their type; several of a type are separated by commas."""
    from pxr import Usd

    def read(name: str) -> str:
        found = prim.GetAttribute(name).Get(Usd.TimeCode.EarliestTime())
        values = [found] if isinstance(found, str) else found
        if not values or not all(isinstance(value, str) and value for value in values):
            raise TypeError
        return ','.join(values)

    labels: dict[str, list[str]] = {}
    for name in prim.GetAuthoredPropertyNames(lambda name: name.startswith(('semantic:', _NEW))):
        old = _OLD.fullmatch(name)
        try:
            if old is not None:
                kind, label = read(name), read(f'semantic:{old[1]}:params:semanticData')
            elif name.startswith(_NEW):
                kind, label = name.removeprefix(_NEW), read(name)
            else:
                continue
            labels.setdefault(kind, []).append(label)
        except TypeError:
            warnings.add(f'{name} is left out, labels must be strings', prim)
    return {kind: ','.join(each) for kind, each in labels.items()}


def _thing(path: Sdf.Path, labels: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the prim that some labels describe as a whole, and their meaning."""
    model = _MODEL.fullmatch(labels.get('class', ''))
    if model is None:
        return str(path), labels
    whole = next((each for each in path.GetPrefixes() if each.name == model['model']), path)
    return str(whole), {**labels, 'class': model['category']}
