"""Signature cache: the actions that a worker is known to accept, so that a step need not wait for it to check them.

A step changes nothing anywhere if one worker refuses its actions: all of them check first, which costs a call. Most
controllers refuse an action for its signature only (shapes and types), or if it is not finite. What they took once in
an env of the same task, they take again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from internutopia.cluster.packing import Column, LeafGroup, Packed
from internutopia.engines.views import LARGEST_NUMBER

Signature = tuple[Any, ...]

_SEQUENCES = frozenset({list, tuple})
_NUMBERS = _SEQUENCES | {float, int}  # what else is in a sequence makes no array of numbers


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
        form = sorted(each.__name__ for each in types & _SEQUENCES)
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
