"""Inverse kinematics: joint positions that bring the tip of a chain to a pose, for many poses at once.

Damped least squares after Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method"
(IEEE Transactions on Robotics, 2011): the damping grows with the error, so that nothing explodes at singular positions
and for targets out of reach, of which the nearest is found. Joints that would leave their limits are held there and the
others do the rest. Joints that a target leaves free drift towards their home positions.

Rows do not influence each other: the result for a target is the same, to the bit, whatever else is solved beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.kinematics import KinematicChain

Array = NDArray[np.float64]

POSITION_TOLERANCE = 1e-4  # m at scale 1; a target this near counts as met
ROTATION_TOLERANCE = 1e-3  # rad
_ROTATION_WEIGHT = 0.2  # m/rad: what a turn counts beside a distance
_LONGEST_STEP = 0.2  # m: errors beyond that pull no stronger
_SMALLEST_DAMPING = 1e-8
_ITERATIONS = 60
_STANDSTILL = 1e-7  # rad or m: a step shorter than that changes nothing any more
_DRIFT, _DRIFT_DECAY = 0.1, 0.85  # share of the way home that free joints go in the first step, and its decay
_SEEDS = 6  # starting points for a target that was not met from where the joints are


class InverseKinematics:
    """Solves for the tip of a chain; joints in the chain's order.

    Args:
        chain: the joints from the base link to the tip.
        home: positions that free joints drift to `(m,)` [rad or m].
        moving: which joints may move `(m,)`; the others stay where they start.
        scale: size of the robot: lengths are tolerated in proportion to it.
    """

    def __init__(
        self, chain: KinematicChain, home: Sequence[float] | Array, moving: NDArray[np.bool_], scale: float = 1.0
    ):
        self.chain = chain
        self._home = np.asarray(home, np.float64)
        self._moving = moving
        self._tolerance = POSITION_TOLERANCE * scale
        self._low, self._high = chain.ranges.T
        reach = np.where(np.isfinite(chain.ranges), chain.ranges, [-np.pi, np.pi])
        shares = np.random.default_rng(0).uniform(0.1, 0.9, (_SEEDS - 1, len(self._home)))
        self._seeds = np.concatenate([self._home[None], reach[:, 0] + shares * (reach[:, 1] - reach[:, 0])])

    def solve(
        self, targets: Array, turned: NDArray[np.bool_], start: Array, search: NDArray[np.bool_]
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Joint positions `(n, m)` for targets, and which of them are met `(n,)`.

        Args:
            targets: poses of the tip in the frame of the base link `(n, 4, 4)`.
            turned: for which targets the orientation counts `(n,)`.
            start: joint positions to start from `(n, m)`.
            search: which targets are tried from other positions too if they are not met from their start `(n,)`. Out of
                all results, that one is taken which is nearest to the target, and of those that meet it, the nearest to
                the start.
        """
        positions, errors = self._descend(targets, turned, start)
        met = self._met(errors)
        missed = np.flatnonzero(search & ~met)
        if len(missed):
            again = np.repeat(missed, _SEEDS)
            seeds = np.where(self._moving, np.tile(self._seeds, (len(missed), 1)), start[again])
            found, left = self._descend(targets[again], turned[again], seeds)
            found = np.concatenate([positions[missed][:, None], found.reshape(len(missed), _SEEDS, -1)], axis=1)
            left = np.concatenate([errors[missed][:, None], left.reshape(len(missed), _SEEDS, 6)], axis=1)
            way = np.square(found - start[missed][:, None]).sum(axis=-1)
            badness = np.where(self._met(left), 0.0, 1.0 + np.square(left).sum(axis=-1))
            best = np.argmin(badness + 1e-8 * way, axis=1)
            rows = np.arange(len(missed))
            positions[missed], met[missed] = found[rows, best], self._met(left[rows, best])
        return positions, met

    def _descend(self, targets: Array, turned: NDArray[np.bool_], start: Array) -> tuple[Array, Array]:
        """Joint positions near the start that bring the tip near the targets, and the errors left `(n, 6)`."""
        positions = np.where(self._moving, np.clip(start, self._low, self._high), start)
        errors = np.zeros((len(start), 6))
        rows = np.arange(len(start))  # those that still move
        for iteration in range(_ITERATIONS):
            here = positions[rows]
            poses = self.chain.poses(here)
            errors[rows] = error = self._errors(poses[:, -1], targets[rows], turned[rows])
            rows = rows[~(done := self._met(error))]
            if not len(rows):
                break
            here, error = here[~done], error[~done]
            jacobian = self.chain.jacobian(poses[~done]) * self._moving
            jacobian[:, 3:] *= _ROTATION_WEIGHT * turned[rows][:, None, None]
            new = self._step(here, error, jacobian, _DRIFT * _DRIFT_DECAY**iteration)
            positions[rows] = new
            rows = rows[np.abs(new - here).max(axis=-1) > _STANDSTILL]
            if not len(rows):
                break
        else:
            errors[rows] = self._errors(self.chain.poses(positions[rows])[:, -1], targets[rows], turned[rows])
        return positions, errors

    def _step(self, positions: Array, error: Array, jacobian: Array, drift: float) -> Array:
        """The next joint positions."""
        length = np.linalg.norm(error, axis=-1, keepdims=True)
        pull = error * np.minimum(1.0, _LONGEST_STEP / np.maximum(length, _LONGEST_STEP))
        gradient = (jacobian * pull[..., None]).sum(axis=1)
        held = ((positions <= self._low) & (gradient < 0.0)) | ((positions >= self._high) & (gradient > 0.0))
        jacobian = np.where(held[:, None], 0.0, jacobian)
        transposed = jacobian.swapaxes(-1, -2)
        damping = 0.5 * np.square(pull).sum(axis=-1) + _SMALLEST_DAMPING
        gram = jacobian @ transposed + damping[:, None, None] * np.eye(6)
        homeward = drift * np.where(self._moving & ~held, self._home - positions, 0.0)
        # what the joints do for the target, and of the way home what does not disturb that
        lacking = pull - (jacobian @ homeward[..., None])[..., 0]
        step = homeward + (transposed @ np.linalg.solve(gram, lacking[..., None]))[..., 0]
        return np.where(self._moving, np.clip(positions + step, self._low, self._high), positions)

    def _errors(self, tips: Array, targets: Array, turned: NDArray[np.bool_]) -> Array:
        """Way to go `(n, 6)` [m]: along the axes, and about them times `_ROTATION_WEIGHT`."""
        turn = rotation_vectors(targets[:, :3, :3] @ tips[:, :3, :3].swapaxes(-1, -2))
        turn *= _ROTATION_WEIGHT * turned[:, None]
        return np.concatenate([targets[:, :3, 3] - tips[:, :3, 3], turn], axis=-1)

    def _met(self, errors: Array) -> NDArray[np.bool_]:
        near = np.linalg.norm(errors[..., :3], axis=-1) <= self._tolerance
        return near & (np.linalg.norm(errors[..., 3:], axis=-1) <= _ROTATION_WEIGHT * ROTATION_TOLERANCE)


def rotation_vectors(matrices: Array) -> Array:
    """Axes times angles `(n, 3)` [rad] of rotation matrices `(n, 3, 3)`; angles are at most pi."""
    m = matrices
    # twice the sine times the axis; its quaternion is more precise near half a turn than the matrix itself
    w = 1.0 + m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 2]
    x = 1.0 + m[:, 0, 0] - m[:, 1, 1] - m[:, 2, 2]
    y = 1.0 - m[:, 0, 0] + m[:, 1, 1] - m[:, 2, 2]
    z = 1.0 - m[:, 0, 0] - m[:, 1, 1] + m[:, 2, 2]
    squares = np.stack([w, x, y, z], axis=-1)
    a, b, c = m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]
    d, e, f = m[:, 1, 0] + m[:, 0, 1], m[:, 0, 2] + m[:, 2, 0], m[:, 2, 1] + m[:, 1, 2]
    candidates = np.stack(
        [
            np.stack([w, a, b, c], axis=-1),
            np.stack([a, x, d, e], axis=-1),
            np.stack([b, d, y, f], axis=-1),
            np.stack([c, e, f, z], axis=-1),
        ],
        axis=1,
    )
    quaternions = candidates[np.arange(len(m)), squares.argmax(axis=-1)]
    quaternions = quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)
    quaternions = np.where(quaternions[:, :1] < 0.0, -quaternions, quaternions)
    sine = np.linalg.norm(quaternions[:, 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, quaternions[:, :1])
    return quaternions[:, 1:] * np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)
