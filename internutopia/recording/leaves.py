"""Leaves of nested observations and actions: the numeric arrays in them, by the path to each.

The path is that of the keys, `'h1/sensors/imu/angular_velocity'`. Numbers and lists of numbers are arrays, too, ragged
lists one vector (a position and a quaternion: 7 numbers); whatever is none (text, None) is no leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Leaves = dict[str, NDArray[Any]]

_IGNORED = 'render'  # of an observation: whether images in it are new
_END = None  # of a mapping, among the keys of a tree
_NUMBERS = (bool, int, float)
_MAPPINGS = (dict, Mapping)  # dict first: checked much faster
_NUMERIC = 'biuf'  # kinds of types
_LARGE = 1024  # numbers in an array


class Gathered(NamedTuple):
    """A leaf of some trees: its path, their indices `(m,)`, and its arrays `(m, ...)`, of one shape and type.

    `rows` is a list of the arrays themselves where they are images, or have two dimensions or more and are large.
    """

    path: str
    indices: list[int]
    rows: NDArray[Any] | list[NDArray[Any]]


def numeric_leaves(tree: Any) -> Leaves:
    """Return copies of the leaves of one tree, by path."""
    return {path: array for path, value in _values(tree, '') if (array := _array(value)) is not None}


def gathered_leaves(trees: Sequence[Any]) -> Iterator[Gathered]:
    """Return the leaves of many trees, together where they are the same; copies except for the large ones."""
    by_keys: dict[tuple[Any, ...], tuple[list[int], list[list[Any]]]] = {}
    for index, tree in enumerate(trees):
        keys: list[Any] = []
        values: list[Any] = []
        _walk(tree, keys, values)
        indices, table = by_keys.setdefault(tuple(keys), ([], []))
        indices.append(index)
        table.append(values)
    for indices, table in by_keys.values():
        paths = (path for path, _ in _values(trees[indices[0]], ''))
        for path, column in zip(paths, zip(*table, strict=True), strict=True):
            yield from _alike(path, indices, column)


def is_picture(value: NDArray[Any]) -> bool:
    """Return whether an array is an image in colours, `(height, width, 3)` or with alpha."""
    return value.dtype == np.uint8 and value.ndim == 3 and value.shape[2] in (3, 4)


def _walk(tree: Any, keys: list[Any], values: list[Any]) -> None:
    """Append all keys of a tree, with an end behind those of each mapping in it, and the values at them."""
    if type(tree) is np.ndarray or not isinstance(tree, _MAPPINGS):
        values.append(tree)
        return
    for name, inner in tree.items():
        if name == _IGNORED:
            continue
        keys.append(name)
        if type(inner) is np.ndarray:  # most of them: no call for it
            values.append(inner)
        else:
            _walk(inner, keys, values)
    keys.append(_END)


def _values(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Return the values of a tree in the order of `_walk`, with their paths."""
    if isinstance(tree, Mapping):
        for name, inner in tree.items():
            if name != _IGNORED:
                yield from _values(inner, f'{path}/{name}' if path else str(name))
    else:
        yield path, tree


def _alike(path: str, indices: list[int], values: Sequence[Any]) -> Iterator[Gathered]:
    """Group the values at a path by shape and type."""
    first = values[0]
    if len(set(map(type, values))) == 1:
        if type(first) in _NUMBERS and (rows := _array(values)) is not None:
            yield Gathered(path, indices, rows)
            return
        alike = type(first) is np.ndarray and first.dtype.kind in _NUMERIC
        if alike and all(each.dtype is first.dtype and each.shape == first.shape for each in values):
            yield Gathered(path, indices, _joined(values))
            return
    by_form: dict[tuple[Any, ...], tuple[list[int], list[NDArray[Any]]]] = {}
    for index, value in zip(indices, values, strict=True):
        if (array := _array(value)) is not None:
            own, arrays = by_form.setdefault((*array.shape, array.dtype), ([], []))
            own.append(index)
            arrays.append(array)
    for own, arrays in by_form.values():
        yield Gathered(path, own, _joined(arrays))


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any] | list[NDArray[Any]]:
    first = arrays[0]
    if first.ndim > 1 and (first.size >= _LARGE or is_picture(first)):
        return list(arrays)
    if not first.ndim:
        return np.array(arrays)
    return np.concatenate(arrays).reshape(len(arrays), *first.shape)  # much faster than np.stack


def _array(value: Any) -> NDArray[Any] | None:
    """Return a copy of a value as an array; None if it is no numbers."""
    try:
        array = np.array(value)
    except ValueError:  # ragged
        parts = [part.ravel() for each in value if (part := _array(each)) is not None]
        return np.concatenate(parts) if len(parts) == len(value) else None
    return array if array.dtype.kind in _NUMERIC else None
