"""Checks of values that setters are passed: finite states, and targets within reach of the joints.

An engine would start an env anew for a state that is not finite, or never recover from it.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.views import LARGEST_NUMBER, ArticulationView, EnvIds
from internutopia.util import log
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


_FAR = 2 * math.pi  # rad or m beyond a limit: controllers that push against it stay below, degrees do not


class TargetCheck:
    """One-time warning for targets of an articulation that are far outside of its joint limits.

    Args:
        view: the articulation, in all envs.
    """

    def __init__(self, view: ArticulationView):
        self._view = view
        self._done = False

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Largest absolute targets of all joints `(dof,)` that need no `check`: any, once it has warned."""
        return np.minimum(np.abs(self._view.joint_ranges).max(axis=1) + _FAR, LARGEST_NUMBER)

    def check(self, env_ids: EnvIds, targets: Any, joints: Any) -> None:
        """Warn if a target `(n, k)` of some joints is beyond its bound; on a device only the first are checked."""
        if self._done:
            return
        values = to_host(targets)
        bounds = self.bounds[joints]
        beyond = np.abs(values) > bounds  # NaN, which keeps a target, is not
        self._done = is_tensor(targets) or bool(beyond.any())
        if self._done:
            self.bounds = np.full_like(self.bounds, LARGEST_NUMBER)
        if not beyond.any():
            return
        row, column = np.argwhere(np.broadcast_to(beyond, (len(env_ids), np.size(bounds))))[0]
        joint = np.arange(len(self._view.dof_names))[joints][column]
        log.warning(
            'env %d: robot %r, joint %r: position target %.4g is far outside of its limits, %.3g to %.3g; are targets '
            'in radians (of sliding joints in metres)? This is logged once.',
            *(to_host(env_ids)[row], self._view.name, self._view.dof_names[joint]),
            *(np.broadcast_to(values, (len(env_ids), np.size(bounds)))[row, column], *self._view.joint_ranges[joint]),
        )
