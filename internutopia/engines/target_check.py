"""Target check: one warning for position targets far outside of joint limits, as those in degrees are."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.views import LARGEST_NUMBER, ArticulationView, EnvIds
from internutopia.util import log
from internutopia.util.arrays import is_tensor, to_host

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
        values = to_host(targets)
        if self._done or type(values) is not np.ndarray:  # values of compiled controllers cannot be read
            return
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
            'in radians (of sliding joints in metres)? This is said once.',
            *(to_host(env_ids)[row], self._view.name, self._view.dof_names[joint]),
            *(np.broadcast_to(values, (len(env_ids), np.size(bounds)))[row, column], *self._view.joint_ranges[joint]),
        )
