"""Packing of many small nested values into a few arrays, to send them to another process.

Observations and actions of envs are dicts of small arrays, alike from env to env. `pack` puts the arrays that stand at
the same place into one, with a row per env; Ray then moves it through shared memory. `unpack` gives the values back:
dicts (with the order of their keys), lists and tuples of arrays, numbers, text and whatever else can be pickled. Arrays
that come out are writable rows of a copy.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.step_result import StepResult

Layout = tuple[Any, ...]
"""`('dict', class, keys, items)`, `('list', class, items)`, `('array', dtype, shape)` or `('leaf',)`."""
Column = NDArray[Any] | list[Any]

_LEAF: Layout = ('leaf',)
_MAPPINGS, _SEQUENCES = (dict, OrderedDict), (list, tuple, StepResult)
_MAX_LAYOUTS = 256
_DTYPE = attrgetter('dtype')


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
        return _values(packed.groups[0])
    values: list[Any] = [None] * packed.count
    for group in packed.groups:
        for row, value in zip(group.rows, _values(group), strict=True):
            values[row] = value
    return values


def stacked(packed: Packed) -> Any:
    """Values of one layout as arrays with a row for each, by the keys of their dicts; None if they make none.

    `{'a': [1.0, 2.0]}` and `{'a': [3.0, 4.0]}` become `{'a': array([[1.0, 2.0], [3.0, 4.0]])}`.
    """
    if len(packed.groups) != 1:
        return None
    try:
        return _stacked_tree(packed.groups[0].layout, iter(packed.groups[0].columns))
    except ValueError:  # arrays of several shapes, or no numbers
        return None


def array_bytes(packed: Packed) -> int:
    """Size of the arrays."""
    return sum(c.nbytes for group in packed.groups for c in group.columns if isinstance(c, np.ndarray))


class _LayoutMismatchError(Exception):
    """Values are not of one layout."""


def _group(rows: Sequence[int], values: Sequence[Any]) -> LeafGroup:
    """Values that are all of the layout of the first one."""
    layout = _layout(values[0])
    return LeafGroup(rows, layout, list(map(_column, zip(*_reader(layout)(values), strict=True))))


def _column(leaves: Sequence[Any]) -> Column:
    """The leaves that stand at the same place."""
    first, one_type = leaves[0], len(set(map(type, leaves))) == 1
    if one_type and _is_nested(first):
        return _joined(leaves)
    if not one_type and any(map(_is_nested, leaves)):
        raise _LayoutMismatchError
    return list(leaves)


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays as rows of one; they are compared by what joins them, in C."""
    shape = arrays[0].shape
    try:
        if shape and len(set(map(len, arrays))) == 1:
            return np.concatenate(arrays, dtype=arrays[0].dtype, casting='no').reshape(len(arrays), *shape)
    except (TypeError, ValueError):  # one differs in its type, or in its shape
        raise _LayoutMismatchError from None
    if shape or len(set(map(_DTYPE, arrays))) > 1 or any(map(np.ndim, arrays)):
        raise _LayoutMismatchError
    return np.array(arrays)


def _stacked_tree(layout: Layout, columns: Iterator[Column]) -> Any:
    if layout[0] in ('leaf', 'array'):
        column = np.asarray(next(columns))
        if column.dtype.hasobject:
            raise ValueError(f'{column[0]!r} is no number')
        return column
    items = [_stacked_tree(item, columns) for item in layout[-1]]
    return dict(zip(layout[2], items, strict=True)) if layout[0] == 'dict' else np.stack(items, axis=1)


def _layout(value: Any) -> Layout:
    kind = type(value)
    if kind in _MAPPINGS:
        return ('dict', kind, tuple(value), tuple([_layout(item) for item in value.values()]))
    if kind in _SEQUENCES:
        return ('list', kind, tuple([_layout(item) for item in value]))
    return ('array', value.dtype.str, value.shape) if _is_nested(value) else _LEAF


def _is_nested(value: Any) -> bool:
    """Whether a value is flattened: a dict, list or tuple of exactly that class, or an array of numbers or text."""
    kind = type(value)
    if kind is np.ndarray:
        return not value.dtype.hasobject and value.dtype.names is None
    return kind in _MAPPINGS or kind in _SEQUENCES


def _values(group: LeafGroup) -> list[Any]:
    columns = [column if isinstance(column, list) else _rows(np.array(column)) for column in group.columns]
    return _builder(group.layout)(range(len(group.rows)), *columns)


def _rows(array: NDArray[Any]) -> Iterable[Any]:
    return array if array.ndim > 1 else [array[row, ...] for row in range(len(array))]


@functools.lru_cache(maxsize=_MAX_LAYOUTS)
def _reader(layout: Layout) -> Callable[[Sequence[Any]], list[tuple[Any, ...]]]:
    """Function that takes values apart: the leaves of each. _LayoutMismatchError for one of another layout.

    It is one loop without inner ones, which takes half the time of going through layout and values together.
    """
    scope: dict[str, Any] = {'Mismatch': _LayoutMismatchError}
    lines, leaves = list[str](), list[str]()
    _read(layout, 'value', lines, leaves, scope)
    body = [*lines, f'rows.append(({"".join(f"{leaf}, " for leaf in leaves)}))']
    text = ['def read(values):', '    rows = []', '    for value in values:', *(f'        {line}' for line in body)]
    exec('\n'.join([*text, '    return rows']), scope)
    return scope['read']


def _read(layout: Layout, value: str, lines: list[str], leaves: list[str], scope: dict[str, Any]) -> None:
    """Add lines that take apart what a name stands for, and the names of its leaves."""
    kind = layout[0]
    if kind in ('leaf', 'array'):
        leaves.append(value)
        return
    name = f'name{len(scope)}'
    scope[name], scope[f'{name}_keys'] = layout[1], list(layout[2]) if kind == 'dict' else len(layout[2])
    keys = f'[*{value}]' if kind == 'dict' else f'len({value})'
    lines.append(f'if type({value}) is not {name} or {keys} != {name}_keys: raise Mismatch')
    items = [f'{name}_{index}' for index in range(len(layout[-1]))]
    if items:
        lines.append(f'{", ".join(items)}, = {value}{".values()" if kind == "dict" else ""}')
    for item, item_name in zip(layout[-1], items, strict=True):
        _read(item, item_name, lines, leaves, scope)


@functools.lru_cache(maxsize=_MAX_LAYOUTS)
def _builder(layout: Layout) -> Callable[..., list[Any]]:
    """Function that makes values from the numbers of rows and the columns of their leaves.

    It is one expression: Python takes a third of the time for it that it takes for the same in a loop over keys.
    """
    scope: dict[str, Any] = {}
    leaves = ['_']
    value = _expression(layout, leaves, scope)
    return eval(f'lambda *columns: [{value} for {", ".join(leaves)}, in zip(*columns, strict=True)]', scope)


def _expression(layout: Layout, leaves: list[str], scope: dict[str, Any]) -> str:
    """Text that makes a value of a layout from names of its leaves, which are added, and of classes and keys."""
    kind = layout[0]
    if kind in ('leaf', 'array'):
        leaves.append(f'leaf{len(leaves)}')
        return leaves[-1]
    items = [_expression(item, leaves, scope) for item in layout[-1]]
    names = [f'name{len(scope) + index}' for index in range(1 + len(items))]
    if kind == 'dict':
        scope.update(zip(names, layout[1:2] + layout[2], strict=True))
        pairs = ', '.join(f'{key}: {item}' for key, item in zip(names[1:], items, strict=True))
        return f'{{{pairs}}}' if layout[1] is dict else f'{names[0]}({{{pairs}}})'
    row = ''.join(f'{item}, ' for item in items)
    if layout[1] is StepResult:
        scope['make'] = functools.partial(tuple.__new__, StepResult)
        return f'make(({row}))'
    return f'[{row}]' if layout[1] is list else f'({row})'
