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
    if layout[0] == 'dict' and len(layout[2]) == 1:  # no order to compare: in a third of the time
        return columns_of(layout[3][0], _only_items(layout, values))
    form, expected = (tuple, layout[2]) if layout[0] == 'dict' else (len, len(layout[2]))
    if set(map(type, values)) != {layout[1]} or not all(map(expected.__eq__, map(form, values))):
        raise LayoutMismatchError
    items = zip(*(map(layout[1].values, values) if layout[0] == 'dict' else values), strict=True)
    return [column for item, own in zip(layout[-1], items, strict=True) for column in columns_of(item, own)]


def _only_items(layout: Layout, values: Sequence[Any]) -> list[Any]:
    """Return the only item of each of these dicts."""
    if set(map(type, values)) != {layout[1]} or set(map(len, values)) != {1}:
        raise LayoutMismatchError
    try:
        return list(map(itemgetter(layout[2][0]), values))
    except KeyError:
        raise LayoutMismatchError from None


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
