"""Kinematics of a model without dynamics: poses of bodies, and joint positions that reach a pose.

Nothing here is simulated: a chain is read once from the robot's model, and computes in double precision with one call
for all rows, so that controllers can evaluate poses that the robot does not have. It does so with arrays of numpy,
and after `on_device` with tensors.

    chain = articulation.view.chain('panda_link0', 'right_gripper', env_id)
    poses = chain.poses(positions)              # (n, m) -> (n, m + 1, 4, 4)
    jacobian = chain.jacobian(poses)            # (n, 6, m)

Jacobians are geometric: B. Siciliano et al., "Robotics: Modelling, Planning and Control" (2009), section 3.1.

Damped least squares after Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method"
(IEEE Transactions on Robotics, 2011): the damping grows with the error, so that nothing explodes at singular positions
and for targets out of reach, of which the nearest is found. Joints that would leave their limits are held there and the
others do the rest. Joints that a target leaves free drift towards their home positions.

Rows do not influence each other: the result for a target is the same, bit for bit, whatever else is solved with it.

`solve` continues until the last row is done. On a device the host would have to wait for that; there `improve` makes a
few iterations in every step, from all starting points at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.util.arrays import ArrayMaker, HostArrays, namespace_of
from internutopia.util.rotations import cross

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
        linear = xp.where(self.slides[:, None], axes, cross(axes, tip - frames[..., :3, 3]))
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


POSITION_TOLERANCE = 1e-4  # m at scale 1; a target this near counts as met
ROTATION_TOLERANCE = 1e-3  # rad
_ROTATION_WEIGHT = 0.2  # m/rad: weight of a turn relative to a distance
_LONGEST_STEP = 0.2  # m: errors beyond that pull no stronger
_SMALLEST_DAMPING = 1e-8
_ITERATIONS = 60
_FEW_ITERATIONS = 4
_STANDSTILL = 1e-7  # rad or m: a step shorter than that changes nothing any more
_DRIFT, _DRIFT_DECAY = 0.1, 0.85  # share of the way home that free joints go in the first step, and its decay
_SEEDS = 6  # starting points for a target that was not met from where the joints are


class InverseKinematics:
    """Solver for the tip of a chain; joints in the chain's order.

    Args:
        chain: the joints from the base link to the tip.
        home: positions that free joints drift to `(m,)` [rad or m].
        moving: which joints may move `(m,)`; the others stay where they start.
        scale: size of the robot: lengths are tolerated in proportion to it.
        arrays: makes arrays of the kind that targets are.
    """

    def __init__(
        self,
        chain: KinematicChain,
        home: Sequence[float] | Array,
        moving: NDArray[np.bool_],
        scale: float = 1.0,
        arrays: ArrayMaker | None = None,
    ):
        arrays = arrays or HostArrays()
        self.chain = chain.on_device(arrays) if arrays.on_device else chain
        self._xp: Any = arrays.xp
        self._home = arrays.asarray(home, 'float64')
        self._moving = arrays.asarray(moving)
        self._identity = arrays.asarray(np.eye(6), 'float64')
        self._tolerance = POSITION_TOLERANCE * scale
        self._low, self._high = self.chain.ranges.T
        reach = np.where(np.isfinite(chain.ranges), chain.ranges, [-np.pi, np.pi])
        shares = np.random.default_rng(0).uniform(0.1, 0.9, (_SEEDS - 1, len(home)))
        seeds = np.concatenate([np.asarray(home)[None], reach[:, 0] + shares * (reach[:, 1] - reach[:, 0])])
        self._seeds = arrays.asarray(seeds, 'float64')

    def solve(
        self, targets: Array, turned: NDArray[np.bool_], start: Array, search: NDArray[np.bool_]
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Solve for joint positions `(n, m)` of targets; returns also which of them are met `(n,)`.

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
            best = self._best(found, left, start[missed])
            rows = np.arange(len(missed))
            positions[missed], met[missed] = found[rows, best], self._met(left[rows, best])
        return positions, met

    def attempts(self, start: Array) -> Array:
        """Return joint positions to reach a target from, `(n, k, m)`, of which the first are `start` `(n, m)`."""
        others = self._xp.where(self._moving, self._seeds, start[:, None])
        return self._xp.concat([start[:, None], others], axis=1)

    def improve(
        self, targets: Array, turned: NDArray[np.bool_], attempts: Array, start: Array, made: Array
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return attempts `(n, k, m)` nearer to the targets, the best of each `(n, m)`, and which targets it meets.

        Arguments as those of `solve`; `made` is how often the attempts at each target were improved before `(n,)`.
        """
        xp, k = self._xp, attempts.shape[1]

        def for_each(values: Any) -> Any:
            return xp.repeat(values, k, axis=0)

        targets, turned = for_each(targets), for_each(turned)
        drift = for_each(_DRIFT * _DRIFT_DECAY ** (_FEW_ITERATIONS * made))[:, None]
        positions = attempts.reshape(-1, attempts.shape[2])
        positions = xp.where(self._moving, positions.clip(self._low, self._high), positions)
        for iteration in range(_FEW_ITERATIONS):
            poses = self.chain.poses(positions)
            error = self._errors(poses[:, -1], targets, turned)
            jacobian = self._jacobian(poses, turned)
            new = self._step(positions, error, jacobian, drift * _DRIFT_DECAY**iteration)
            positions = xp.where(self._met(error)[:, None], positions, new)
        left = self._errors(self.chain.poses(positions)[:, -1], targets, turned).reshape(-1, k, 6)
        attempts = positions.reshape(attempts.shape)
        best = (xp.arange(len(start), device=start.device), self._best(attempts, left, start))
        return attempts, attempts[best], self._met(left[best])

    def _best(self, attempts: Array, left: Array, start: Array) -> NDArray[np.intp]:
        """Return the index `(n,)` of the best attempt in `(n, k, m)`: the nearest to start that meets the target."""
        xp = self._xp
        way = xp.square(attempts - start[:, None]).sum(axis=-1)
        badness = xp.where(self._met(left), 0.0, 1.0 + xp.square(left).sum(axis=-1))
        return (badness + 1e-8 * way).argmin(axis=1)

    def _descend(self, targets: Array, turned: NDArray[np.bool_], start: Array) -> tuple[Array, Array]:
        """Return joint positions near the start that bring the tip near the targets, and the errors left `(n, 6)`."""
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
            jacobian = self._jacobian(poses[~done], turned[rows])
            new = self._step(here, error, jacobian, _DRIFT * _DRIFT_DECAY**iteration)
            positions[rows] = new
            rows = rows[np.abs(new - here).max(axis=-1) > _STANDSTILL]
            if not len(rows):
                break
        else:
            errors[rows] = self._errors(self.chain.poses(positions[rows])[:, -1], targets[rows], turned[rows])
        return positions, errors

    def _jacobian(self, poses: Array, turned: NDArray[np.bool_]) -> Array:
        """Return the Jacobian of the errors with respect to the joints that may move `(n, 6, m)`."""
        jacobian = self.chain.jacobian(poses) * self._moving
        jacobian[:, 3:] *= _ROTATION_WEIGHT * turned[:, None, None]
        return jacobian

    def _step(self, positions: Array, error: Array, jacobian: Array, drift: Any) -> Array:
        """Return the next joint positions; `drift` is a number or `(n, 1)`."""
        xp = self._xp
        length = xp.linalg.vector_norm(error, axis=-1, keepdims=True)
        pull = error * (_LONGEST_STEP / length.clip(min=_LONGEST_STEP)).clip(max=1.0)
        gradient = (jacobian * pull[..., None]).sum(axis=1)
        held = ((positions <= self._low) & (gradient < 0.0)) | ((positions >= self._high) & (gradient > 0.0))
        jacobian = xp.where(held[:, None], 0.0, jacobian)
        transposed = jacobian.swapaxes(-1, -2)
        damping = 0.5 * xp.square(pull).sum(axis=-1) + _SMALLEST_DAMPING
        gram = jacobian @ transposed + damping[:, None, None] * self._identity
        homeward = drift * xp.where(self._moving & ~held, self._home - positions, 0.0)
        # what the joints do for the target, and of the way home what does not disturb that
        lacking = pull - (jacobian @ homeward[..., None])[..., 0]
        step = homeward + (transposed @ _solution(gram, lacking[..., None]))[..., 0]
        return xp.where(self._moving, (positions + step).clip(self._low, self._high), positions)

    def _errors(self, tips: Array, targets: Array, turned: NDArray[np.bool_]) -> Array:
        """Return the pose errors `(n, 6)` [m]: along the axes, and about them times `_ROTATION_WEIGHT`."""
        turn = rotation_vectors(targets[:, :3, :3] @ tips[:, :3, :3].swapaxes(-1, -2))
        turn *= _ROTATION_WEIGHT * turned[:, None]
        return self._xp.concat([targets[:, :3, 3] - tips[:, :3, 3], turn], axis=-1)

    def _met(self, errors: Array) -> NDArray[np.bool_]:
        norm = self._xp.linalg.vector_norm
        near = norm(errors[..., :3], axis=-1) <= self._tolerance
        return near & (norm(errors[..., 3:], axis=-1) <= _ROTATION_WEIGHT * ROTATION_TOLERANCE)


def _solution(a: Array, b: Array) -> Any:
    """Solve a x = b; on a device the existence of a solution is not checked, which the host would have to wait for."""
    xp: Any = namespace_of(a)
    return np.linalg.solve(a, b) if xp is np else xp.linalg.solve_ex(a, b, check_errors=False)[0]


def rotation_vectors(matrices: Array) -> Array:
    """Return axes times angles `(n, 3)` [rad] of rotation matrices `(n, 3, 3)`; angles are at most pi."""
    m, xp = matrices, namespace_of(matrices)
    # twice the sine times the axis; its quaternion is more precise near half a turn than the matrix itself
    w = 1.0 + m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 2]
    x = 1.0 + m[:, 0, 0] - m[:, 1, 1] - m[:, 2, 2]
    y = 1.0 - m[:, 0, 0] + m[:, 1, 1] - m[:, 2, 2]
    z = 1.0 - m[:, 0, 0] - m[:, 1, 1] + m[:, 2, 2]
    squares = xp.stack([w, x, y, z], axis=-1)
    a, b, c = m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]
    d, e, f = m[:, 1, 0] + m[:, 0, 1], m[:, 0, 2] + m[:, 2, 0], m[:, 2, 1] + m[:, 1, 2]
    candidates = xp.stack(
        [
            xp.stack([w, a, b, c], axis=-1),
            xp.stack([a, x, d, e], axis=-1),
            xp.stack([b, d, y, f], axis=-1),
            xp.stack([c, e, f, z], axis=-1),
        ],
        axis=1,
    )
    quaternions = candidates[xp.arange(len(m), device=m.device), squares.argmax(axis=-1)]
    quaternions = quaternions / xp.linalg.vector_norm(quaternions, axis=-1, keepdims=True)
    quaternions = xp.where(quaternions[:, :1] < 0.0, -quaternions, quaternions)
    sine = xp.linalg.vector_norm(quaternions[:, 1:], axis=-1, keepdims=True)
    angle = 2.0 * xp.arctan2(sine, quaternions[:, :1])
    return quaternions[:, 1:] * xp.where(sine > 1e-12, angle / sine.clip(min=1e-12), 2.0)
