"""Semantics of a compiled scene: its labelled things, their labels, and their geoms.

Labels of a scene travel as custom texts of its model, so they are composed, cached and saved with it. A text
`semantics:<element>` labels a body or geom of the scene: its data are a class such as `chair`, or JSON,
`{"class": "chair", "color": "red"}`. The USD importer writes such texts for labelled prims; in MJCF anyone can:

    <custom><text name="semantics:box_table" data="table"/></custom>

A label holds for all geoms of a body and of what hangs on it, in USD for all that is below the prim. A thing within a
labelled thing is one of its own, and has the labels of both, as in Omniverse Replicator: a `drawer` in a `cabinet` is
`cabinet,drawer`. An object of a task is one thing, whose class is its name; labels in its file, and in those of robots,
are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.groups import custom_texts
from internutopia.model.part_boxes import PartBox, part_boxes
from internutopia.model.spec import OBJECTS_PREFIX, SCENE_PREFIX, ObjectSpec
from internutopia.util import did_you_mean
from internutopia.util.log import warn_once

PREFIX = 'semantics:'
_FIRST_ID = 2  # 0 and 1: nothing, and what has no label
_PRIM = f'{SCENE_PREFIX}/'  # what names of elements from USD begin with: prim paths


@dataclass(frozen=True)
class Label:
    """A labelled thing.

    Attributes:
        path: where it is below its env, `/scene/World/chair` or `/objects/cube`.
        semantics: labels by their type (taxonomy), `{'class': 'chair'}`; several of a type are separated by commas.
        geoms: of which it consists in the model, things within it included.
    """

    path: str
    semantics: dict[str, str]
    geoms: NDArray[np.intp]

    @property
    def category(self) -> str:
        """Category, see `category_of`."""
        return category_of(self.semantics)

    @property
    def categories(self) -> tuple[str, ...]:
        """Categories one by one."""
        return tuple(self.category.split(','))


def category_of(semantics: Mapping[str, str]) -> str:
    """Return the labels of type `class`, or else those of the first type."""
    return semantics.get('class') or next(iter(semantics.values()))


class SceneLabels:
    """The labelled things of a compiled scene.

    Args:
        model: of the scene.
        objects: of the task, by the names of their bodies in it.
        bodies: what bodies with poses are called, by their number.
        numbered: `SceneSpec.numbered`.

    Attributes:
        things: those of the scene in the order of its model, then the task's objects.
        geom_labels: `(ngeom,)` which thing each geom shows, -1 for none.
        categories: what there is.
        instance_ids: `(k,)` number of each thing, from 2 on.
        semantic_ids: `(k,)` number of the labels of each thing, from 2 on; equal labels have the same number.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        objects: Mapping[str, ObjectSpec],
        bodies: Mapping[int, str],
        numbered: Sequence[str] = (),
    ):
        self._model, self._bodies = model, bodies
        semantics = {**_texts(model), **{body: {'class': obj.name} for body, obj in objects.items()}}
        owners = _owners(model, semantics)
        members: dict[str, list[int]] = {}
        merged: dict[str, dict[str, str]] = {}
        for geom, names in enumerate(owners):
            for depth, name in enumerate(names):
                members.setdefault(name, []).append(geom)
                if name not in merged:
                    merged[name] = _merge(semantics[each] for each in reversed(names[depth:]))
        index = {name: number for number, name in enumerate(members)}
        paths = {body: obj.path for body, obj in objects.items()}
        self.things = tuple(
            Label(paths.get(name) or f'/{name.replace(_PRIM, SCENE_PREFIX)}', merged[name], np.array(geoms, np.intp))
            for name, geoms in members.items()
        )
        self.geom_labels = np.array([index[names[0]] if names else -1 for names in owners], np.int32)
        labels = {name: merged[name] for name in members if name not in objects}
        for name in numbered or [obj.name for obj in objects.values()]:
            labels[OBJECTS_PREFIX + name] = _merge([{'class': name}])
        known: dict[str, int] = {}
        texts = {name: json.dumps(each, sort_keys=True) for name, each in labels.items()}
        kinds = {name: known.setdefault(text, _FIRST_ID + len(known)) for name, text in texts.items()}
        numbers = {name: number for number, name in enumerate(labels, _FIRST_ID)}
        self.categories = frozenset(category for thing in self.things for category in thing.categories)
        self.instance_ids = np.array([numbers[name] for name in members], np.uint32)
        self.semantic_ids = np.array([kinds[name] for name in members], np.uint32)

    @cached_property
    def parts(self) -> list[tuple[PartBox, ...]]:
        """Boxes around the parts of each thing, see `part_boxes`."""
        return part_boxes(self._model, self._bodies, (thing.geoms for thing in self.things))


def _texts(model: mujoco.MjModel) -> dict[str, dict[str, str]]:
    """Return texts of the scene, by the name of the element that each is about. ValueError for a broken one."""
    return {
        prefix + element: _parse(PREFIX + element, data)
        for prefix, element, data in custom_texts(model, PREFIX)
        if prefix == SCENE_PREFIX
    }


def _parse(name: str, data: str) -> dict[str, str]:
    if not data.startswith('{'):
        return {'class': data}
    try:
        found = json.loads(data)
    except json.JSONDecodeError as error:
        raise ValueError(f'text {name!r} must be a class or a JSON object of strings: {error}') from error
    if not found or not all(isinstance(value, str) for value in found.values()):
        raise ValueError(f'text {name!r} must be a class or a JSON object of strings, it is {data}')
    return found


def _owners(model: mujoco.MjModel, semantics: Mapping[str, object]) -> list[tuple[str, ...]]:
    """Return for each geom the labelled elements that it belongs to, the nearest first."""
    if not semantics:
        return [()] * model.ngeom
    geoms, bodies = [model.geom(i).name for i in range(model.ngeom)], [model.body(i).name for i in range(model.nbody)]
    _warn_of_unknown(semantics, {*geoms, *bodies})
    of_bodies: list[tuple[str, ...]] = [()]
    for body in range(1, model.nbody):
        above = of_bodies[model.body_parentid[body]]
        of_bodies.append((bodies[body], *above) if bodies[body] in semantics else above)

    def of_geom(name: str, body: int) -> Iterator[str]:
        if not name.startswith(_PRIM):
            yield from (each for each in dict.fromkeys([name, *of_bodies[body]]) if each in semantics)
        while name.startswith(_PRIM):
            if name in semantics:
                yield name
            name = name.rpartition('/')[0]

    return [tuple(of_geom(name, body)) for name, body in zip(geoms, model.geom_bodyid.tolist(), strict=True)]


def _warn_of_unknown(semantics: Iterable[str], known: set[str]) -> None:
    """Warn of texts on missing MJCF elements; a prim may well have no geom."""
    for element in semantics:
        if element not in known and not element.startswith(_PRIM):
            wrong = element.removeprefix(SCENE_PREFIX)
            hint = did_you_mean(
                wrong, [name.removeprefix(SCENE_PREFIX) for name in known if name.startswith(SCENE_PREFIX)]
            )
            warn_once('text %r has no effect: there is no such body or geom; %s', PREFIX + wrong, hint)


def _merge(semantics: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge labels of things within each other, the outermost first, each label once."""
    merged: dict[str, dict[str, None]] = {}
    for each in semantics:
        for kind, labels in each.items():
            merged.setdefault(kind, {}).update(dict.fromkeys(label.strip() for label in labels.split(',')))
    return {kind: ','.join(labels) for kind, labels in merged.items()}
