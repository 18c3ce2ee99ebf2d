"""Packing of many small nested values into a few arrays, to send them to another process.

Observations and actions are dicts of small arrays, with the same structure in every env. `pack` stacks arrays at the
same place into one, with a row per env; Ray then moves it through shared memory. `unpack` restores the values: dicts
(in the order of their keys), lists and tuples of arrays, numbers, text and everything else that can be pickled.
Unpacked arrays are writable rows of a copy. Long lists of numbers, such as paths, are sent as they are.

If one worker rejects its actions, the step changes nothing in any worker: all of them check first, which costs a call.
Most controllers reject an action only for its signature (shapes and types), or if it is not finite. A signature that
they accepted once in an env of the same task is accepted again, so a `SignatureCache` saves the call.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.observations import StepResult
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.util.layouts import LEAF, Layout, LayoutMismatchError, columns_of, values_of

Column = NDArray[Any] | list[Any]

_MAPPINGS, _SEQUENCES = (dict, OrderedDict), (list, tuple, StepResult)
_MANY = 16  # items: a longer sequence of numbers is left whole, or each length would be its own layout
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
    rows_by_form: dict[Any, list[int]] = {}
    try:
        groups = [_group(range(len(values)), values)] if values else []
    except LayoutMismatchError:
        for row, value in enumerate(values):
            rows_by_form.setdefault(_form(value), []).append(row)
        groups = [_group(rows, [values[row] for row in rows]) for rows in rows_by_form.values()]
    return Packed(len(values), groups)


def unpack(packed: Packed) -> list[Any]:
    """Unpack the values that were packed."""
    if len(packed.groups) == 1:
        return _values(packed.groups[0])
    values: list[Any] = [None] * packed.count
    for group in packed.groups:
        for row, value in zip(group.rows, _values(group), strict=True):
            values[row] = value
    return values


def stacked(packed: Packed) -> Any:
    """Stack values of one layout to arrays with a row for each, by the keys of their dicts; None if impossible.

    `{'a': [1.0, 2.0]}` and `{'a': [3.0, 4.0]}` become `{'a': array([[1.0, 2.0], [3.0, 4.0]])}`.
    """
    if len(packed.groups) != 1:
        return None
    try:
        return _stacked_tree(packed.groups[0].layout, iter(packed.groups[0].columns))
    except ValueError:  # arrays of several shapes, or no numbers
        return None


def _group(rows: Sequence[int], values: Sequence[Any]) -> LeafGroup:
    """Group values that are all of the form of the first one. LayoutMismatchError if one is not."""
    layout = _layout(values[0])
    return LeafGroup(rows, layout, list(map(_column, columns_of(layout, values))))


def _column(leaves: Sequence[Any]) -> Column:
    """Return the leaves that stand at the same place. LayoutMismatchError if they are no column."""
    first, one_type = leaves[0], len(set(map(type, leaves))) == 1
    if one_type and _is_nested(first):
        return _joined(leaves)
    if not one_type and any(map(_is_nested, leaves)):
        raise LayoutMismatchError
    return list(leaves)


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays as rows of one; joining them also compares them, in C."""
    shape = arrays[0].shape
    try:
        if shape and len(set(map(len, arrays))) == 1:
            return np.concatenate(arrays, dtype=arrays[0].dtype, casting='no').reshape(len(arrays), *shape)
    except (TypeError, ValueError):  # one differs in its type, or in its shape
        raise LayoutMismatchError from None
    if shape or len(set(map(_DTYPE, arrays))) > 1 or any(map(np.ndim, arrays)):
        raise LayoutMismatchError
    return np.array(arrays)


def _stacked_tree(layout: Layout, columns: Iterator[Column]) -> Any:
    if layout[0] == 'leaf':
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
    if kind in _SEQUENCES and _is_nested(value):
        return ('list', kind, tuple([_layout(item) for item in value]))
    return LEAF


def _form(value: Any) -> tuple[Any, ...]:
    """Return what the values of a group have in common: their layout, and type and shape of their arrays."""
    layout = _layout(value)
    leaves = (leaf for (leaf,) in columns_of(layout, [value]))
    return layout, tuple([(leaf.dtype.str, leaf.shape) if _is_nested(leaf) else None for leaf in leaves])


def _is_nested(value: Any) -> bool:
    """Return whether a value is flattened: exactly a dict, list or tuple, or an array of numbers or text.

    Long sequences of numbers are not.
    """
    kind = type(value)
    if kind is np.ndarray:
        return not value.dtype.hasobject and value.dtype.names is None
    return kind in _MAPPINGS or (kind in _SEQUENCES and not (len(value) > _MANY and _is_numbers(value)))


def _is_numbers(values: Sequence[Any]) -> bool:
    """Return whether a sequence holds only numbers, and sequences of numbers."""
    return all(
        type(value) is float or type(value) is int or (type(value) in _SEQUENCES and _is_numbers(value))
        for value in values
    )


def _values(group: LeafGroup) -> list[Any]:
    columns = (column if isinstance(column, list) else _rows(np.array(column)) for column in group.columns)
    return values_of(group.layout, len(group.rows), columns)


def _rows(array: NDArray[Any]) -> Iterable[Any]:
    return array if array.ndim > 1 else [array[row, ...] for row in range(len(array))]


Signature = tuple[Any, ...]

_ROWS = frozenset({list, tuple})
_NUMBERS = _ROWS | {float, int}  # what else is in a sequence makes no array of numbers


class SignatureCache:
    """The signatures of actions that one worker took, with the tasks that its envs ran."""

    def __init__(self) -> None:
        self._tasks: dict[Signature, set[int]] = {}

    def covers(self, actions: Packed, tasks: Sequence[int]) -> bool:
        """Return whether actions, each with the index of the task that runs in its env, are sure to be accepted."""
        for group in actions.groups:
            known = self._tasks.get(_signature(group))
            if known is None or not known.issuperset(map(tasks.__getitem__, group.rows)):
                return False
        return True

    def add(self, actions: Packed, tasks: Sequence[int]) -> None:
        """Add actions that were accepted, for which only their signature mattered."""
        for group in actions.groups:
            self._tasks.setdefault(_signature(group), set()).update(map(tasks.__getitem__, group.rows))


def _signature(group: LeafGroup) -> Signature:
    """Return layout and kinds of columns; for other than acceptable numbers, a signature that never recurs."""
    kinds = tuple(_kind(column) for column in group.columns)
    return (object(),) if '' in kinds else (group.layout, kinds)


def _kind(column: Column) -> str:
    """Return `'none'`, form and shape of numbers, or `''` for all else and for numbers that `box_action` refuses."""
    if isinstance(column, list):
        types = set(map(type, column))
        if types == {type(None)}:
            return 'none'
        if not types <= _NUMBERS:
            return ''
        form = sorted(each.__name__ for each in types & _ROWS)
        try:
            numbers = np.asarray(column)
        except (ValueError, OverflowError):  # sequences of several lengths, or one that is none of numbers
            kinds = {_kind([each]) for each in column} if len(column) > 1 else {''}
            return '' if '' in kinds else ' '.join(sorted(kinds))
    else:
        form, numbers = column.dtype.str, column
    if numbers.dtype.kind not in 'iuf':
        return ''
    if numbers.size:
        low, high = np.array([numbers.min(), numbers.max()]).tolist()  # of Python: the limit is infinite for a float16
        if not -LARGEST_NUMBER <= low <= high <= LARGEST_NUMBER:  # NaN is neither
            return ''
    return f'{form} {numbers.shape[1:]}'
