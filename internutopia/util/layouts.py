"""Layouts of nested values: many values of one layout are taken apart into columns of leaves, and put together again.

Both go through a layout once, not once per value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

Layout = tuple[Any, ...]
"""`('dict', class, keys, items)`, `('list', class, items)` or `('leaf',)`: the type of a leaf does not matter."""
LEAF: Layout = ('leaf',)


class LayoutMismatchError(Exception):
    """A value is of another layout."""


def columns_of(layout: Layout, values: Sequence[Any]) -> list[Sequence[Any]]:
    """Return a column for each leaf, of the values of all. LayoutMismatchError for a value of another layout."""
    if layout[0] == 'leaf':
        return [values]
    if layout[0] == 'dict':
        items: Iterable[Sequence[Any]] = dict_columns(layout[1], layout[2], values)
    elif set(map(type, values)) == {layout[1]} and set(map(len, values)) == {len(layout[2])}:
        items = zip(*values, strict=True)
    else:
        raise LayoutMismatchError
    return [column for item, own in zip(layout[-1], items, strict=True) for column in columns_of(item, own)]


def dict_columns(cls: type[Any], keys: tuple[Any, ...], values: Sequence[Any]) -> list[list[Any]]:
    """Return a column for each of the keys of dicts. LayoutMismatchError for one of other keys, order or class."""
    if set(map(type, values)) != {cls} or set(map(len, values)) != {len(keys)}:
        raise LayoutMismatchError
    if len(keys) > 1 and not all(map(keys.__eq__, map(tuple, values))):  # one key has no order to compare
        raise LayoutMismatchError
    columns: list[list[Any]] = []
    try:
        for key in keys:
            columns.append(list(map(itemgetter(key), values)))
    except KeyError:
        raise LayoutMismatchError from None
    return columns


def values_of(layout: Layout, count: int, columns: Iterator[Iterable[Any]]) -> list[Any]:
    """Return so many values, from the columns of their leaves."""
    if layout[0] == 'leaf':
        return list(next(columns))
    kind, items = layout[1], [values_of(item, count, columns) for item in layout[-1]]
    rows = zip(*items, strict=True) if items else [()] * count
    if layout[0] == 'dict':
        return list(map(kind, map(zip, repeat(layout[2]), rows)))
    if kind in (list, tuple):
        return list(map(kind, rows))
    return [tuple.__new__(kind, row) for row in rows]  # a named tuple
