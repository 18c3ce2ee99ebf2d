"""Check that what envs are put into is finite: an engine would start them anew for it, or never recover."""

from __future__ import annotations

from typing import Any

import numpy as np

from internutopia.engines.views import EnvIds
from internutopia.util.arrays import is_tensor, to_host
from internutopia.util.errors import EnvValueError


def check_finite(env_ids: EnvIds, name: str, quantity: str, values: Any) -> None:
    """Raise EnvValueError if numbers for envs, `(n, ...)` or broadcastable, are not finite; None, and tensors, may be.

    Args:
        env_ids: the envs `(n,)`.
        name: of the robot or body.
        quantity: called so in the message.
        values: the values; tensors of a device are not checked, since the host would have to wait.
    """
    if values is None or is_tensor(values):
        return
    numbers = np.asarray(values)
    if not np.isfinite(numbers).all():
        row = int(np.argwhere(~np.isfinite(numbers))[0, 0]) if numbers.ndim > 1 else 0
        env_id = int(to_host(env_ids)[row])
        wrong = (numbers[row] if numbers.ndim > 1 else numbers).tolist()
        raise EnvValueError(env_id, f'env {env_id}: {quantity} of {name!r} must be finite, got {wrong}')


def check_orientations(env_ids: EnvIds, name: str, orientations: Any) -> None:
    """Check quaternions `(n, 4)` likewise; their length may not be zero either."""
    check_finite(env_ids, name, 'orientation', orientations)
    if orientations is None or is_tensor(orientations):
        return
    zero = ~np.asarray(orientations).any(axis=-1)
    if zero.any():
        env_id = int(to_host(env_ids)[zero.argmax()])
        raise EnvValueError(env_id, f'env {env_id}: orientation of {name!r} is a quaternion of length zero')
