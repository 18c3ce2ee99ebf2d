"""Packing of many small nested values into a few arrays, to send them to another process.

Observations and actions of envs are dicts of small arrays, alike from env to env. `pack` puts the arrays that stand at
the same place into one, with a row per env; Ray then moves it through shared memory. `unpack` gives the values back:
dicts (with the order of their keys), lists and tuples of arrays, numbers, text and whatever else can be pickled. Arrays
that come out are writable rows of a copy.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Layout = tuple[Any, ...]
"""`('dict', class, keys, items)`, `('list', class, items)`, `('array', dtype, shape)` or `('leaf',)`."""
Column = NDArray[Any] | list[Any]

_LEAF: Layout = ('leaf',)
_DTYPE, _SHAPE = attrgetter('dtype'), attrgetter('shape')


@dataclass(frozen=True)
class LeafGroup:
    """Values of one layout: where they stand in the sequence, and a column for every leaf, in order."""

    rows: Sequence[int]
    layout: Layout
    columns: list[Column]


@dataclass(frozen=True)
class Packed:
    """A sequence of `count` values."""

    count: int
    groups: list[LeafGroup]


def pack(values: Sequence[Any]) -> Packed:
    """Gather values."""
    rows_by_layout: dict[Layout, list[int]] = {}
    try:
        groups = [_group(range(len(values)), values)] if values else []
    except _LayoutMismatchError:
        for row, value in enumerate(values):
            rows_by_layout.setdefault(_layout(value), []).append(row)
        groups = [_group(rows, [values[row] for row in rows]) for rows in rows_by_layout.values()]
    return Packed(len(values), groups)


def unpack(packed: Packed) -> list[Any]:
    """The values that were packed."""
    if len(packed.groups) == 1:
        (group,) = packed.groups
        return list(_unflatten(group.layout, iter(group.columns), packed.count))
    values: list[Any] = [None] * packed.count
    for group in packed.groups:
        for row, value in zip(group.rows, _unflatten(group.layout, iter(group.columns), len(group.rows)), strict=True):
            values[row] = value
    return values


def array_bytes(packed: Packed) -> int:
    """Size of the arrays."""
    return sum(c.nbytes for group in packed.groups for c in group.columns if isinstance(c, np.ndarray))


class _LayoutMismatchError(Exception):
    """Values are not of one layout."""


def _group(rows: Sequence[int], values: Sequence[Any]) -> LeafGroup:
    columns: list[Column] = []
    return LeafGroup(rows, _flatten(values, columns), columns)


def _flatten(values: Sequence[Any], columns: list[Column]) -> Layout:
    """Flatten values of one layout, all of them at once."""
    first = values[0]
    kind = type(first)
    if len(set(map(type, values))) > 1 and any(_is_nested(value) for value in values):
        raise _LayoutMismatchError
    if kind is dict or kind is OrderedDict:
        if len(set(map(tuple, values))) > 1:
            raise _LayoutMismatchError
        items = zip(*[value.values() for value in values], strict=True)
        return ('dict', kind, tuple(first), tuple([_flatten(each, columns) for each in items]))
    if kind is list or kind is tuple:
        if len(set(map(len, values))) > 1:
            raise _LayoutMismatchError
        return ('list', kind, tuple([_flatten(items, columns) for items in zip(*values, strict=True)]))
    if _is_nested(first):
        dtype, shape = first.dtype, first.shape
        if len(set(map(_DTYPE, values))) > 1 or len(set(map(_SHAPE, values))) > 1:
            raise _LayoutMismatchError
        columns.append(np.concatenate(values).reshape(len(values), *shape) if shape else np.array(values))
        return ('array', dtype.str, shape)
    columns.append(list(values))
    return _LEAF


def _layout(value: Any) -> Layout:
    kind = type(value)
    if kind is dict or kind is OrderedDict:
        return ('dict', kind, tuple(value), tuple([_layout(item) for item in value.values()]))
    if kind is list or kind is tuple:
        return ('list', kind, tuple([_layout(item) for item in value]))
    return ('array', value.dtype.str, value.shape) if _is_nested(value) else _LEAF


def _is_nested(value: Any) -> bool:
    """Whether a value is flattened: a dict, list or tuple of exactly that class, or an array of numbers or text."""
    kind = type(value)
    if kind is np.ndarray:
        return not value.dtype.hasobject and value.dtype.names is None
    return kind is dict or kind is OrderedDict or kind is list or kind is tuple


def _unflatten(layout: Layout, columns: Iterator[Column], count: int) -> Sequence[Any]:
    """Values from their columns, all of them at once."""
    kind = layout[0]
    if kind == 'leaf':
        return list(next(columns))
    if kind == 'array':
        array = np.array(next(columns))
        return list(array) if layout[2] else [array[row, ...] for row in range(count)]
    items = [_unflatten(item, columns, count) for item in layout[-1]]
    if not items:
        return [layout[1]() for _ in range(count)]
    if kind == 'dict':
        cls, keys = layout[1], layout[2]
        return [cls(zip(keys, row, strict=True)) for row in zip(*items, strict=True)]
    return [layout[1](row) for row in zip(*items, strict=True)]
