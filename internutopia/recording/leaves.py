"""Leaves of nested observations and actions: the numeric arrays in them, by the path to each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Leaves = dict[str, NDArray[Any]]

_IGNORED = 'render'  # of an observation: whether pictures in it are new


def numeric_leaves(value: Any) -> Leaves:
    """Copies of the numeric arrays in nested mappings, by path (`'h1/sensors/imu/angular_velocity'`).

    Numbers and lists of numbers are arrays, too; whatever is none (text, None, ragged lists) is left out.
    """
    return dict(_leaves(value, ''))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name != _IGNORED:
                yield from _leaves(inner, f'{path}/{name}' if path else str(name))
        return
    try:
        array = np.array(value)
    except ValueError:  # ragged
        return
    if array.dtype.kind in 'biuf':
        yield path, array
