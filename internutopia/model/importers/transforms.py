"""Transforms: rotations and frames, and the split of their linear part into rotation, scale, shear; for all formats."""

from __future__ import annotations

from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RELATIVE_TOLERANCE = 1e-5  # transforms are often authored in single precision


def polar(linear: Array) -> tuple[Array, Array]:
    """Return rotation R and symmetric stretch S with `R @ S = linear`, each `(3, 3)`; S is negative for reflections."""
    left, _, right = np.linalg.svd(linear)
    rotation = left @ right
    rotation *= np.sign(np.linalg.det(rotation))
    return rotation, rotation.T @ linear


def axis_scales(linear: Array) -> tuple[Array, Array] | None:
    """Return rotation R, factors s: `R @ diag(s) = linear`, up to a mirrored x axis; None if `linear` shears."""
    scales = np.linalg.norm(linear, axis=0)
    axes = linear / scales
    if not np.allclose(axes.T @ axes, np.eye(3), rtol=0, atol=RELATIVE_TOLERANCE):
        return None
    left, _, right = np.linalg.svd(axes)
    rotation = left @ right  # exactly orthogonal
    if np.linalg.det(rotation) < 0:
        rotation[:, 0] *= -1
    return rotation, scales


def equal(*lengths: float) -> bool:
    """Return True if positive lengths are the same within the tolerance."""
    return bool(np.allclose(lengths, lengths[0], rtol=RELATIVE_TOLERANCE, atol=0))


def to_quat(rotation: Array) -> Array:
    """Return the unit quaternion `(w, x, y, z)` of a rotation matrix."""
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, rotation.ravel())
    return quat


def from_quat(quat: Array) -> Array:
    """Return the rotation matrix of a quaternion `(w, x, y, z)` of any length but 0."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quat, float) / np.linalg.norm(quat))
    return matrix.reshape(3, 3)


def principal(tensor: Array) -> tuple[Array, Array]:
    """Return principal moments `(3,)` of a symmetric tensor, ascending, and right-handed axes `(3, 3)`, as columns."""
    moments, axes = np.linalg.eigh(tensor)
    axes[:, 0] *= np.linalg.det(axes)
    return moments, axes


def about(axis: int, angle: float) -> Array:
    """Return the rotation by an angle [rad] about the x (0), y (1) or z (2) axis."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    rotation = np.eye(3)
    rotation[i, i] = rotation[j, j] = np.cos(angle)
    rotation[i, j], rotation[j, i] = -np.sin(angle), np.sin(angle)
    return rotation


def twist(rotation: Array, axis: int) -> float:
    """Return the part of a rotation [rad] that is about the x (0), y (1) or z (2) axis, within -pi..pi."""
    quat = to_quat(rotation)
    angle = 2 * np.arctan2(quat[1 + axis], quat[0])
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def euler_xyz(rotation: Array) -> Array:
    """Return angles `(3,)` [rad] with `rotation = about(0, a) @ about(1, b) @ about(2, c)`."""
    b = np.arcsin(np.clip(rotation[0, 2], -1, 1))
    if abs(rotation[0, 2]) > 1 - 1e-9:  # a and c turn about the same axis
        return np.array([np.arctan2(rotation[2, 1], rotation[1, 1]), b, 0.0])
    return np.array([np.arctan2(-rotation[1, 2], rotation[2, 2]), b, np.arctan2(-rotation[0, 1], rotation[0, 0])])


@dataclass(frozen=True)
class Frame:
    """A right-handed frame: position `(3,)` [m] and rotation `(3, 3)`."""

    position: Array = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))

    def __matmul__(self, other: Frame) -> Frame:
        """Return the frame that `other` is if it is given relative to this one."""
        return Frame(self.position + self.rotation @ other.position, self.rotation @ other.rotation)

    def inverse(self) -> Frame:
        """Return the frame in which this one is the origin."""
        return Frame(-self.rotation.T @ self.position, self.rotation.T)
