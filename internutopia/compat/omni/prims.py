"""`isaacsim.core.utils.prims`: queries of prims and their attributes, and simple edits.

The stage is that of `internutopia.compat.omni.mirror`; the meaning of an edit of it is described there. `fabric` is
accepted: there is one stage, without Fabric. Where an attribute or a relative is requested, a path without a prim is a
ValueError.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.compat.omni import mirror
from internutopia.compat.omni.prim_shapes import add_labels
from internutopia.compat.omni.stage_utils import add_reference_to_stage
from internutopia.compat.omni.xforms import set_local_matrix
from internutopia.core.scene.scene import IScene
from internutopia.model.spec import IDENTITY_QUAT
from internutopia.util import did_you_mean

if TYPE_CHECKING:
    from pxr import Usd

Predicate = Callable[[str], bool]


def get_prim_at_path(prim_path: str, fabric: bool = False) -> Usd.Prim:
    """Return the prim, or an invalid one (false in an `if`) where there is none."""
    return mirror.get_prim_at_path(prim_path)


def is_prim_path_valid(prim_path: str, fabric: bool = False) -> bool:
    """Return whether there is a prim."""
    return get_prim_at_path(prim_path).IsValid()


def is_prim_root_path(prim_path: str) -> bool:
    """Return whether a path is that of the root, `/`."""
    return prim_path == '/'


def get_prim_path(prim: Usd.Prim) -> str:
    """Return the path of a prim."""
    return prim.GetPath().pathString


def get_prim_parent(prim: Usd.Prim) -> Usd.Prim:
    """Return the parent of a prim."""
    return prim.GetParent()


def get_prim_children(prim: Usd.Prim) -> list[Usd.Prim]:
    """Return the children of a prim."""
    return list(prim.GetChildren())


def get_prim_type_name(prim_path: str, fabric: bool = False) -> str:
    """Return the type of a prim, such as `'Xform'`."""
    return str(mirror.existing_prim(prim_path).GetTypeName())


def get_all_matching_child_prims(
    prim_path: str, predicate: Predicate = lambda path: True, depth: int | None = None
) -> list[Usd.Prim]:
    """Return the prim and all below it, down to a depth, whose paths a predicate is true for; nearer ones first."""
    return [prim for prim in _below(prim_path, depth) if predicate(get_prim_path(prim))]


def get_first_matching_child_prim(prim_path: str, predicate: Predicate, fabric: bool = False) -> Usd.Prim | None:
    """Return the first of the matching child prims, or None."""
    return next((prim for prim in _below(prim_path, None) if predicate(get_prim_path(prim))), None)


def get_first_matching_parent_prim(prim_path: str, predicate: Predicate) -> Usd.Prim | None:
    """Return the nearest of the prim and its ancestors whose path the predicate is true for, or None."""
    prim = mirror.existing_prim(prim_path)
    while not prim.IsPseudoRoot():
        if predicate(get_prim_path(prim)):
            return prim
        prim = prim.GetParent()
    return None


def find_matching_prim_paths(prim_path_regex: str, prim_type: str | None = None) -> list[str]:
    """Return the paths each of whose names matches, in full, a pattern: `/World/env_*/robots/h1`, `/World/*/scene`.

    `*` stands for any text, unless there are other characters of regular expressions in a name, such as `env_.*`.
    A `prim_type` selects robots (`'articulation'`) or rigid bodies (`'rigid_body'`) of an env. ValueError for what is
    no pattern, and for another `prim_type`.
    """
    if prim_type not in (None, *_TYPES):
        raise ValueError(f'find_matching_prim_paths: prim_type {prim_type!r}: give one of {", ".join(_TYPES)}, or None')
    found = [mirror.current_stage().GetPseudoRoot()]
    for pattern in prim_path_regex.strip('/').split('/'):
        if re.fullmatch(r'[\w*]*', pattern):
            pattern = pattern.replace('*', '.*')
        try:
            name = re.compile(pattern)
        except re.error as error:
            raise ValueError(f'find_matching_prim_paths: {prim_path_regex!r} is no pattern: {error}') from None
        found = [child for prim in found for child in prim.GetChildren() if name.fullmatch(child.GetName())]
    paths = [get_prim_path(prim) for prim in found]
    return paths if prim_type is None else list(filter(_TYPES[prim_type], paths))


def get_prim_attribute_names(prim_path: str, fabric: bool = False) -> list[str]:
    """Return the names of a prim's attributes."""
    return [attribute.GetName() for attribute in mirror.existing_prim(prim_path).GetAttributes()]


def get_prim_attribute_value(prim_path: str, attribute_name: str, fabric: bool = False) -> Any:
    """Return the value of an attribute."""
    return _attribute(prim_path, attribute_name).Get()


def set_prim_attribute_value(prim_path: str, attribute_name: str, value: Any, fabric: bool = False) -> None:
    """Set an attribute."""
    _attribute(prim_path, attribute_name).Set(value)


def get_prim_property(prim_path: str, property_name: str) -> Any:
    """Return the value of an attribute, as `get_prim_attribute_value`."""
    return _attribute(prim_path, property_name).Get()


def set_prim_property(prim_path: str, property_name: str, property_value: Any) -> None:
    """Set an attribute, as `set_prim_attribute_value`."""
    _attribute(prim_path, property_name).Set(property_value)


def set_prim_visibility(prim: Usd.Prim, visible: bool) -> None:
    """Set whether a prim is visible."""
    mirror.set_visibility(prim, visible)


def define_prim(prim_path: str, prim_type: str = 'Xform', fabric: bool = False) -> Usd.Prim:
    """Add a prim. ValueError if there is one."""
    if is_prim_path_valid(prim_path):
        raise ValueError(f'there is a prim at {prim_path!r} already')
    return mirror.current_stage().DefinePrim(prim_path, prim_type)


def create_prim(
    prim_path: str,
    prim_type: str = 'Xform',
    position: Any = None,
    translation: Any = None,
    orientation: Any = None,
    scale: Any = None,
    usd_path: str | None = None,
    semantic_label: str | None = None,
    semantic_type: str = 'class',
    attributes: Mapping[str, Any] | None = None,
) -> Usd.Prim:
    """Add a prim to the stage, which alone shows it. ValueError if there is one, or with `position` and `translation`.

    Args:
        prim_path: where it is put.
        prim_type: type of the prim.
        position: where it is in the world `(3,)` [m].
        translation: the same in the frame of its parent.
        orientation: how it is turned, in the frame of `position` or else `translation`.
        scale: its scale `(3,)`.
        usd_path: a USD file that it refers to.
        semantic_label: a label of it.
        semantic_type: type of that label.
        attributes: values by name of attributes of the type.
    """
    if position is not None and translation is not None:
        raise ValueError(f'{prim_path}: give position (world) or translation (frame of its parent), not both')
    prim = define_prim(prim_path, prim_type)
    if usd_path is not None:
        add_reference_to_stage(usd_path, prim_path, prim_type)
    for name, value in (attributes or {}).items():
        set_prim_attribute_value(prim_path, name, value)
    if any(each is not None for each in (position, translation, orientation, scale)):
        place = position if position is not None else translation if translation is not None else np.zeros(3)
        turn = IDENTITY_QUAT if orientation is None else orientation
        set_local_matrix(prim, place, turn, None if scale is None else np.asarray(scale), position is not None)
    if semantic_label is not None:
        add_labels(prim, [semantic_label], semantic_type)
    return prim


def delete_prim(prim_path: str) -> None:
    """Remove a prim; one that is not there is fine."""
    mirror.current_stage().RemovePrim(prim_path)


def _is_robot(path: str) -> bool:
    return any(path in scene.robot_paths for scene in IScene.all())


def _is_body(path: str) -> bool:
    return any(path.startswith(f'{scene.root_path}/') and scene.has_body_at(path) for scene in IScene.all())


_TYPES: dict[str, Predicate] = {'articulation': _is_robot, 'rigid_body': _is_body}


def _below(prim_path: str, depth: int | None) -> Iterator[Usd.Prim]:
    """Return a prim and all below it, level by level."""
    waiting = deque([(mirror.existing_prim(prim_path), 0)])
    while waiting:
        prim, level = waiting.popleft()
        yield prim
        if depth is None or level < depth:
            waiting.extend((child, level + 1) for child in prim.GetChildren())


def _attribute(prim_path: str, name: str) -> Usd.Attribute:
    """Return an attribute of a prim. ValueError with close matches."""
    attribute = mirror.existing_prim(prim_path).GetAttribute(name)
    if not attribute:
        hint = did_you_mean(name, get_prim_attribute_names(prim_path))
        raise ValueError(f'the prim at {prim_path!r} has no attribute {name!r}; {hint}')
    return attribute
