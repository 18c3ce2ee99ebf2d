"""Checks of what learners ask for, the same at all front doors and made before anything changes."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_open(closed: bool, call: str) -> None:
    """RuntimeError if `call` comes after `close`."""
    if closed:
        raise RuntimeError(f'{call}: the envs are closed; make new ones')


def real_array(actions: Any, shape: tuple[int, ...], name: str = 'actions') -> NDArray[np.float32]:
    """Actions as float32, not copied where they are that already. ValueError for another shape or no real numbers."""
    try:
        array = np.asarray(actions)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f'{name} must be an array of shape {shape}, got {reprlib.repr(actions)}') from error
    if array.dtype.kind not in 'biuf':
        raise ValueError(
            f'{name} must be an array of shape {shape} of real numbers, got dtype {array.dtype}: '
            f'{reprlib.repr(actions)}'
        )
    if array.shape != shape:
        raise ValueError(f'{name} must have shape {shape}, got {array.shape}')
    if array.dtype == np.float32:
        return array
    with np.errstate(over='ignore'):  # infinite then, and found by `check_finite`
        return array.astype(np.float32)


def check_finite(actions: NDArray[np.float32], env_ids: NDArray[np.intp]) -> None:
    """ValueError naming the first env whose action, the row of `actions` at its place in `env_ids`, is not finite."""
    finite = np.isfinite(actions)
    if not finite.all():
        row = int(np.flatnonzero(~finite.all(axis=-1))[0])
        raise ValueError(f'action of env {env_ids[row]} is not finite: {actions[row]}')
