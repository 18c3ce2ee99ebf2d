"""Segmentation: label images in the formats of Omniverse Replicator's annotators of the same names.

Formats as its documentation has them (docs.omniverse.nvidia.com, Replicator, "Annotators Information", without
`colorize`): a dict of `data` and `info`, keys of `info` are numbers. The id of a thing's labels (`semanticId`) is the
same in images and boxes, and so is that of the thing itself (in boxes, `bboxIds`). 0 is the background and 1 what has
no label. Ids are those of a scene, the same in every process: other scenes have others. They stay as they are while
objects are added and removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.base import World
from internutopia.model.semantics import Label, SceneLabels
from internutopia.rendering.camera import BACKGROUND, UNLABELLED
from internutopia.rendering.occlusion import count_pixels

Labels = NDArray[np.int32]

_NOTHING = 0, 1  # ids of `BACKGROUND` and `UNLABELLED`
_NAMES = 'BACKGROUND', 'UNLABELLED'
# fields of Replicator's `bounding_box_2d_tight`; the last pixels (`x_max`, `y_max`) are part of the box
BOX = np.dtype(
    [
        ('semanticId', '<u4'),
        ('x_min', '<i4'),
        ('y_min', '<i4'),
        ('x_max', '<i4'),
        ('y_max', '<i4'),
        ('occlusionRatio', '<f4'),
    ]
)


def semantic_ids(scene: SceneLabels) -> NDArray[np.uint32]:
    """Return the id of the labels `(k + 2,)` at each number of an image; negative numbers count from the end."""
    return np.concatenate([scene.semantic_ids, _table_end()])


def instance_ids(scene: SceneLabels) -> NDArray[np.uint32]:
    """Return the id of the thing at each number of an image, as `semantic_ids` does for labels."""
    return np.concatenate([scene.instance_ids, _table_end()])


def category_ids(scene: SceneLabels, categories: Sequence[str]) -> NDArray[np.uint32]:
    """Return the index in `categories` at each number of an image, from 1 on; 0 for things in none of them."""
    places = [
        next((place for place, each in enumerate(categories, 1) if each in thing.categories), 0)
        for thing in scene.things
    ]
    return np.array([*places, *(0 for _ in _NOTHING)], np.uint32)


class IdTable:
    """Table of the ids of labelled things in each env, for label images of all envs.

    Args:
        world: the physics world.
        ids: gives those of a scene, as `semantic_ids` does.
    """

    def __init__(self, world: World, ids: Callable[[SceneLabels], NDArray[np.uint32]]):
        self._world, self._ids = world, ids
        self._scenes: dict[int, SceneLabels] = {}
        self._table: Any = None

    def of(self, labels: Any, env_ids: Sequence[int]) -> Any:
        """Return the ids in label images `(env_num, height, width)`, arrays of the world's kind, float32.

        Rows of envs that are not among `env_ids` mean nothing.
        """
        world = self._world
        scenes = {env_id: world.labels(env_id) for env_id in env_ids}
        if scenes != self._scenes or self._table is None:
            ids = {env_id: self._ids(scene) for env_id, scene in scenes.items()}
            table = np.zeros((world.env_num, max(map(len, ids.values()), default=len(_NOTHING))), np.float32)
            for env_id, own in ids.items():
                table[env_id, : len(own) - len(_NOTHING)] = own[: -len(_NOTHING)]
                table[env_id, -len(_NOTHING) :] = own[-len(_NOTHING) :]
            self._scenes, self._table = scenes, world.arrays.asarray(table)
        return self._table[world.arrays.arange(world.env_num)[:, None, None], labels]


def semantic_segmentation(labels: Labels, scene: SceneLabels) -> dict[str, Any]:
    """Return the labels at each pixel of a label image `(height, width)`.

    `data` `(height, width)` uint32: ids of labels; `info['idToLabels'][id]`: labels by type, `{'class': 'chair'}`, of
    the ids in the image, 0 and 1.
    """
    ids = semantic_ids(scene)
    shown = {int(ids[thing]): dict(scene.things[thing].semantics) for thing in _visible(labels)}
    return {'data': ids[labels], 'info': {'idToLabels': _classes() | dict(sorted(shown.items()))}}


def instance_segmentation(labels: Labels, scene: SceneLabels, env_path: str) -> dict[str, Any]:
    """Return the thing at each pixel of a label image `(height, width)`.

    `data` `(height, width)` uint32: ids of things; `info['idToLabels'][id]`: the thing's prim path,
    `info['idToSemantics'][id]`: its labels by type, of the ids in the image, 0 and 1. `env_path` is the prim path of
    the env.
    """
    ids = instance_ids(scene)
    shown: dict[int, Label] = {int(ids[thing]): scene.things[thing] for thing in _visible(labels)}
    return {
        'data': ids[labels],
        'info': {
            'idToLabels': dict(zip(_NOTHING, _NAMES, strict=True))
            | {number: env_path + thing.path for number, thing in shown.items()},
            'idToSemantics': _classes() | {number: dict(thing.semantics) for number, thing in shown.items()},
        },
    }


def tight_boxes(labels: Labels, occlusion: NDArray[np.float32], scene: SceneLabels, env_path: str) -> dict[str, Any]:
    """Return the smallest boxes around the visible pixels of each labelled thing in an image `(height, width)`.

    `data`: one row of `BOX` for each thing in the image; `occlusionRatio` is the share of its pixels that others
    hide, 0 if it is seen as a whole, as `occlusion` `(height, width)` has it (nan where it is not measured);
    `info['idToLabels'][semanticId]`: labels by type; `info['bboxIds']`, `info['primPaths']`: ids and prim paths of the
    things, one for each row. What is hidden altogether has no box.
    """
    things = _visible(labels)
    rows, columns = np.nonzero(labels >= 0)
    shown = labels[rows, columns]
    data = np.zeros(len(things), BOX)
    data['semanticId'] = scene.semantic_ids[things]
    ratios = np.zeros(len(scene.things), np.float32)
    ratios[shown] = occlusion[rows, columns]
    data['occlusionRatio'] = ratios[things]
    for axis, pixels, size in (('x', columns, labels.shape[1]), ('y', rows, labels.shape[0])):
        reached = np.zeros((len(scene.things), size), bool)
        reached[shown, pixels] = True
        data[f'{axis}_min'] = reached[things].argmax(axis=1)
        data[f'{axis}_max'] = size - 1 - reached[things, ::-1].argmax(axis=1)
    found = [scene.things[thing] for thing in things]
    classes = {int(number): dict(thing.semantics) for number, thing in zip(data['semanticId'], found, strict=True)}
    info = {
        'idToLabels': dict(sorted(classes.items())),
        'bboxIds': instance_ids(scene)[things],
        'primPaths': [env_path + thing.path for thing in found],
    }
    return {'data': data, 'info': info}


def _visible(labels: Labels) -> list[int]:
    return np.flatnonzero(count_pixels(labels)).tolist()


def _classes() -> dict[int, dict[str, str]]:
    return {number: {'class': name} for number, name in zip(_NOTHING, _NAMES, strict=True)}


def _table_end() -> NDArray[np.uint32]:
    """Return the last entries of a table, at the indices `BACKGROUND` and `UNLABELLED`."""
    end = np.zeros(len(_NOTHING), np.uint32)
    end[[BACKGROUND, UNLABELLED]] = _NOTHING
    return end
