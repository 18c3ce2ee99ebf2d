"""Checks of values that setters are passed: finite numbers in range, and targets within reach of the joints.

An engine would start an env again for a state that is not finite, or never recover from it.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.views import LARGEST_NUMBER, ArticulationView, EnvIds
from internutopia.util import log
from internutopia.util.arrays import is_tensor, is_traced, to_host
from internutopia.util.errors import EnvValueError


class Range(NamedTuple):
    """Finite numbers that a setter takes, from `low` to `high`, and how a message calls them."""

    low: float
    high: float
    text: str


NOT_NEGATIVE = Range(0.0, math.inf, 'not negative')
POSITIVE = Range(float(np.finfo(np.float64).tiny), math.inf, 'positive')
SHARE = Range(POSITIVE.low, 1.0, 'above 0 and at most 1')


def check_numbers(
    env_ids: EnvIds,
    name: str,
    quantity: str,
    values: Any,
    shape: tuple[int, ...] | None = None,
    allowed: Range | None = None,
    optional: bool = False,
) -> None:
    """Raise EnvValueError for values of envs that are no numbers, of another shape, not finite or out of a range.

    Args:
        env_ids: the envs `(n,)`.
        name: of the robot, body or camera.
        quantity: called so in the message.
        values: `(n, ...)` or broadcastable. Tensors of a device are not checked, as the host would have to wait, nor
            are traced arrays.
        shape: that of the values of one env; None: any.
        allowed: range of the numbers; None: any that are finite.
        optional: whether None is right as well.
    """
    plain = type(values) is np.ndarray  # a traced array is a subclass
    if not plain and ((optional and values is None) or is_tensor(values) or is_traced(values)):
        return
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        env_id = int(to_host(env_ids)[0])
        raise EnvValueError(env_id, f'env {env_id}: {quantity} of {name!r}: {error}, got {values!r}') from None
    rows = numbers.shape[:1] if shape is not None or numbers.ndim > 1 else ()  # `(k,)` is for all envs
    if (shape is not None and numbers.shape[1:] != shape) or (rows and rows[0] not in (1, len(env_ids))):
        env_id = int(to_host(env_ids)[0])
        wanted = 'one row per env' if shape is None else f'shape {shape} for each env'
        raise EnvValueError(
            env_id,
            f'env {env_id}: {quantity} of {name!r} must have {wanted} of {len(env_ids)}, got shape {numbers.shape}',
        )
    right, text = np.isfinite(numbers), 'finite'
    if allowed is not None and right.all():
        right, text = (numbers >= allowed.low) & (numbers <= allowed.high), allowed.text
    if not right.all():
        row = int(np.argwhere(~right)[0, 0]) if rows else 0
        env_id = int(to_host(env_ids)[row if row < len(env_ids) else 0])
        wrong = (numbers[row] if rows else numbers).tolist()
        raise EnvValueError(env_id, f'env {env_id}: {quantity} of {name!r} must be {text}, got {wrong}')


def check_poses(env_ids: EnvIds, name: str, positions: Any, orientations: Any) -> None:
    """Check positions `(n, 3)` and quaternions `(n, 4)` likewise; the length of these may not be zero either."""
    check_numbers(env_ids, name, 'position', positions, (3,), optional=True)
    check_numbers(env_ids, name, 'orientation', orientations, (4,), optional=True)
    if orientations is None or is_tensor(orientations):
        return
    zero = ~np.asarray(orientations).any(axis=-1)
    if zero.any():
        env_id = int(to_host(env_ids)[zero.argmax()])
        raise EnvValueError(env_id, f'env {env_id}: orientation of {name!r} is a quaternion of length zero')


def check_velocities(env_ids: EnvIds, name: str, linear: Any, angular: Any) -> None:
    """Check linear and angular velocities `(n, 3)` likewise."""
    check_numbers(env_ids, name, 'linear velocity', linear, (3,), optional=True)
    check_numbers(env_ids, name, 'angular velocity', angular, (3,), optional=True)


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
