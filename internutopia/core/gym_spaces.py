"""Gymnasium spaces of observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces


def space_of(value: Any) -> spaces.Space[Any]:
    """Return the space of observations like this one: unbounded boxes for arrays, two values for a bool.

    Records of varying number (a list of dicts, or an empty list) are left out of the space of what they are in. Raises
    TypeError for a value that no space holds.
    """
    if isinstance(value, Mapping):
        return spaces.Dict({k: space_of(v) for k, v in value.items() if not _has_no_space(v)})
    if isinstance(value, bool | np.bool_):
        return spaces.Discrete(2)
    if isinstance(value, int | np.integer):
        return spaces.Discrete(np.iinfo(np.int64).max)
    array = np.asarray(value)
    if array.dtype.kind == 'f':
        return spaces.Box(-np.inf, np.inf, array.shape, array.dtype.type)
    if array.dtype.kind in 'iu':
        limits = np.iinfo(array.dtype)
        return spaces.Box(limits.min, limits.max, array.shape, array.dtype.type)
    raise TypeError(f'no gymnasium space holds an observation like {value!r}')


def _has_no_space(value: Any) -> bool:
    if isinstance(value, Mapping):
        return not value  # gymnasium allows no empty Dict inside another
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def conform(value: Any, space: spaces.Space[Any]) -> Any:
    """Convert an observation to the exact types of its space; missing values and None become zero."""
    if isinstance(space, spaces.Dict):
        value = value or {}
        return {key: conform(value.get(key), item) for key, item in space.items()}
    if isinstance(space, spaces.Discrete):
        return np.int64(0 if value is None else value)
    assert isinstance(space, spaces.Box)
    return np.zeros(space.shape, space.dtype) if value is None else np.asarray(value, space.dtype)
