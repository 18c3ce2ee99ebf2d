"""Objects that handles add to an env where nothing is at their path, until its episode ends: shapes, and USD files."""

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.core.scene.scene import IScene
from internutopia.model.spec import IDENTITY_QUAT, ObjectSpec

referenced: dict[str, str] = {}
"""USD files that were added to the stage, by prim path: a handle of physics makes them objects."""


def place_in_env(prim_path: str, position: Any, translation: Any) -> Any:
    """Return a place in the frame of the env of a prim path: a position in the world, or else a translation."""
    scene = IScene.at(prim_path)
    if position is None:
        return as_tuple(np.zeros(3) if translation is None else translation)
    origin = 0.0 if scene.adds_by_config else scene.world.env_origins[scene.env_id]
    return as_tuple(np.asarray(position, float) - origin)


def path_below(prim_path: str, name: str) -> str:
    """Return a prim path below its env. ValueError for that of the env."""
    below = prim_path.removeprefix(IScene.at(prim_path).root_path)
    if not below.strip('/'):
        raise ValueError(f'prim_path: {prim_path!r} is that of an env; expected one below it, {prim_path}/{name}')
    return below


def add_referenced(
    prim_path: str, name: str, position: Any, translation: Any, orientation: Any, scale: Any, **fields: Any
) -> bool:
    """Add the USD file that was added to the stage at a prim path of an env; returns False if none was."""
    if prim_path not in referenced:
        return False
    spec = ObjectSpec(
        name,
        referenced.pop(prim_path),
        position=place_in_env(prim_path, position, translation),
        orientation=IDENTITY_QUAT if orientation is None else as_tuple(orientation),
        scale=as_tuple(np.broadcast_to(1.0 if scale is None else scale, 3)),
        prim_path=path_below(prim_path, name),
        **fields,
    )
    IScene.at(prim_path).add_object(spec)
    return True


def as_tuple(values: Any) -> Any:
    """Return numbers as a tuple of floats."""
    return tuple(np.asarray(values, float).tolist())
