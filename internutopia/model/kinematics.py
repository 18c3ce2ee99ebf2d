"""Chains of joints, poses of links and Jacobians for many joint positions at once; limits of joints.

Nothing here is simulated: a chain is read once from the robot's model, and computes in double precision with one call
for all rows, so that controllers can evaluate poses that the robot does not have. It does so with arrays of numpy,
and after `on_device` with tensors.

    chain = articulation.view.chain('panda_link0', 'right_gripper', env_id)
    poses = chain.poses(positions)              # (n, m) -> (n, m + 1, 4, 4)
    jacobian = chain.jacobian(poses)            # (n, 6, m)

Jacobians are geometric: B. Siciliano et al., "Robotics: Modelling, Planning and Control" (2009), section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.util.arrays import ArrayMaker, namespace_of

if TYPE_CHECKING:
    import mujoco

Array = NDArray[np.float64]
LIMIT_TOLERANCE = 1e-3  # rad or m, past the limit of a joint


@dataclass(frozen=True)
class KinematicChain:
    """The m joints between two links of a robot, from the base outwards. All poses are in the frame of the base link.

    Attributes:
        joints: dof indices of the joints in the articulation `(m,)`.
        ranges: joint limits `(m, 2)` [rad or m], infinite where there are none.
        fixed: pose of each joint's frame in the one before it, at position zero, and of the tip in the last one,
            `(m + 1, 4, 4)`.
        axes: joint axes in the joints' frames `(m, 3)`, unit vectors.
        slides: which joints slide `(m,)`; the others turn.
    """

    joints: NDArray[np.intp]
    ranges: Array
    fixed: Array
    axes: Array
    slides: NDArray[np.bool_]

    def on_device(self, arrays: ArrayMaker) -> KinematicChain:
        """Return the same chain for arrays of that kind."""
        return replace(
            self,
            ranges=arrays.asarray(self.ranges, 'float64'),
            fixed=arrays.asarray(self.fixed, 'float64'),
            axes=arrays.asarray(self.axes, 'float64'),
            slides=arrays.asarray(self.slides),
        )

    def poses(self, positions: Array) -> Array:
        """Return poses of the joints' frames and the tip `(n, m + 1, 4, 4)` for joint positions `(n, m)` [rad or m]."""
        xp: Any = namespace_of(positions)
        n, m = positions.shape
        # rotation about an axis (Rodrigues): 1 + sin(q) K + (1 - cos(q)) K K
        angles = xp.where(self.slides, 0.0, positions)[..., None, None]
        steps = xp.zeros((n, m + 1, 4, 4), dtype=xp.float64, device=positions.device)
        steps[:] = xp.eye(4, dtype=xp.float64, device=positions.device)
        steps[:, :m, :3, :3] += xp.sin(angles) * self._crosses + (1.0 - xp.cos(angles)) * self._squares
        steps[:, :m, :3, 3] = xp.where(self.slides, positions, 0.0)[..., None] * self.axes
        steps = self.fixed @ steps
        for k in range(1, m + 1):
            steps[:, k] = steps[:, k - 1] @ steps[:, k]
        return steps

    def jacobian(self, poses: Array) -> Array:
        """Return the Jacobian of the tip `(n, 6, m)`: linear, then angular velocity, in the frame of the base link."""
        xp = namespace_of(poses)
        frames, tip = poses[:, :-1], poses[:, -1:, :3, 3]
        axes = (frames[..., :3, :3] @ self.axes[..., None])[..., 0]
        turning = xp.where(self.slides[:, None], 0.0, axes)
        linear = xp.where(self.slides[:, None], axes, _cross(axes, tip - frames[..., :3, 3]))
        return xp.concat([linear, turning], axis=-1).swapaxes(-1, -2)

    @cached_property
    def _crosses(self) -> Array:
        """Matrices of the cross products with the axes `(m, 3, 3)`."""
        x, y, z = self.axes.T
        xp = namespace_of(x)
        zero = xp.zeros_like(x)
        return xp.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(-1, 3, 3)

    @cached_property
    def _squares(self) -> Array:
        return self._crosses @ self._crosses


def _cross(a: Array, b: Array) -> Array:
    # by components: np.cross is an order of magnitude slower on small batches
    (ax, ay, az), (bx, by, bz) = (tuple(v[..., k] for k in range(3)) for v in (a, b))
    return namespace_of(ax).stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def joint_ranges(model: mujoco.MjModel, joints: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the limits of hinges and slides `(n, 2)` [rad or m], infinite where there are none."""
    return np.where(model.jnt_limited[joints, None] != 0, model.jnt_range[joints], [-np.inf, np.inf])


def outside_limits(names: Iterable[str], positions: ArrayLike, ranges: NDArray[np.float64]) -> str:
    """Return text on joints whose positions `(n,)` are outside their limits, with both; empty if there is none."""
    values = np.asarray(positions)
    low, high = ranges.T
    wrong = (values < low - LIMIT_TOLERANCE) | (values > high + LIMIT_TOLERANCE)
    if not wrong.any():
        return ''
    rows = zip(names, wrong, values, low, high, strict=True)
    return ', '.join(
        f'{name} {value:g} (limits {a:.3g} to {b:.3g})' for name, is_wrong, value, a, b in rows if is_wrong
    )
