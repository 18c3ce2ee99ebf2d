"""Labelled objects: labels of the things in an env, with their current pose and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.scene import env_path
from internutopia.engines.base import World
from internutopia.model.part_boxes import PartBox
from internutopia.util import did_you_mean
from internutopia.util.arrays import to_host
from internutopia.util.errors import EnvValueError
from internutopia.util.rotations import quat_to_matrix

Array = NDArray[np.float64]

_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], bool)
_STILL = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class LabelledObject:
    """Labelled thing of a scene, or object of the task, at the time of the query.

    Its box has the axes of its body, or of its uppermost body if it has several; the box of a static thing has the
    axes of the env. An infinite plane counts as its origin.

    Attributes:
        prim_path: its prim path.
        category: its labels of type `class`; several are separated by commas.
        semantics: all its labels by type.
        position: `(3,)` middle of its box [m], env frame.
        orientation: `(4,)` of the box's axes in the env frame.
        size: `(3,)` edge lengths of the box [m].
        movable: True if physics moves it as a whole.
        body: name of its body for `env.runner.get_obj`; None for static ones.
    """

    prim_path: str
    category: str
    semantics: Mapping[str, str]
    position: Array
    orientation: Array
    size: Array
    movable: bool
    body: str | None


def labelled_objects(world: World, env_id: int, category: str | None = None) -> list[LabelledObject]:
    """Return the labelled things of an env, only those of a category unless it is None.

    ValueError with close matches if it has none of the category, or if it runs no scene.
    """
    scene = world.labels(env_id)
    if category is not None and category not in scene.categories:
        known = did_you_mean(category, sorted(scene.categories))
        raise EnvValueError(env_id, f'env {env_id} has nothing that is labelled as {category!r}; {known}')

    def pose(part: PartBox) -> tuple[Array, Array]:
        if part.body is None:
            return _STILL
        position, orientation = (to_host(values)[env_id] for values in world.body(part.body, env_id).get_poses())
        return position.astype(float), orientation.astype(float)

    found: list[LabelledObject] = []
    for thing, parts in zip(scene.things, scene.parts, strict=True):
        if category is not None and category not in thing.categories:
            continue
        poses = [pose(part) for part in parts]
        (place, orientation), first = poses[0], parts[0]
        axes = quat_to_matrix(orientation)
        low, high = first.low, first.high
        for part, (other, turn) in zip(parts[1:], poses[1:], strict=True):
            corners = other + np.where(_CORNERS, part.high, part.low) @ quat_to_matrix(turn).T
            own = (corners - place) @ axes
            low, high = np.minimum(low, own.min(axis=0)), np.maximum(high, own.max(axis=0))
        found.append(
            LabelledObject(
                prim_path=env_path(env_id) + thing.path,
                category=thing.category,
                semantics=dict(thing.semantics),
                position=place + axes @ (0.5 * (low + high)),
                orientation=orientation,
                size=high - low,
                movable=first.movable,
                body=first.body,
            )
        )
    return found
