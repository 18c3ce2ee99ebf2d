"""Checks of what learners ask for, the same all over the array API and made before anything changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_open(closed: bool, call: str) -> None:
    """RuntimeError if `call` comes after `close`."""
    if closed:
        raise RuntimeError(f'{call}: the envs are closed; make new ones')


def checked_mask(options: Mapping[str, Any] | None, num_envs: int) -> NDArray[np.bool_]:
    """The mask of envs to reset that options of `reset` hold, bool `(n,)`; without one, all.

    TypeError or ValueError if it is none, or there are other options.
    """
    for name in options or ():
        if name != 'reset_mask':
            raise ValueError(f"options: reset has no option {name!r}; known: 'reset_mask', a bool array ({num_envs},)")
    mask = (options or {}).get('reset_mask')
    if mask is None:
        return np.ones(num_envs, bool)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"options['reset_mask'] must be a bool array ({num_envs},), got {mask!r}")
    if mask.shape != (num_envs,):
        raise ValueError(f"options['reset_mask'] must have shape ({num_envs},), got {mask.shape}")
    if not mask.any():
        raise ValueError("options['reset_mask'] names no env")
    return mask


def checked_seed(seed: int | Sequence[int | None] | None, num_envs: int) -> int | list[int] | None:
    """The seed, or those that are given of one per env; None for none. ValueError for another number of them."""
    if seed is None or isinstance(seed, int | np.integer):
        return None if seed is None else int(seed)
    if len(seed) != num_envs:
        raise ValueError(f'seed must be one number or {num_envs}, got {len(seed)}')
    return [int(value) for value in seed if value is not None] or None
