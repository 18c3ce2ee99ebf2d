"""Taking the linear part of a transform apart: rotation, scale, shear."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RELATIVE_TOLERANCE = 1e-5  # transforms are often authored in single precision


def polar(linear: Array) -> tuple[Array, Array]:
    """Rotation R and symmetric stretch S with `R @ S = linear`, each `(3, 3)`; S is negative for a reflection."""
    left, _, right = np.linalg.svd(linear)
    rotation = left @ right
    rotation *= np.sign(np.linalg.det(rotation))
    return rotation, rotation.T @ linear


def axis_scales(linear: Array) -> tuple[Array, Array] | None:
    """Rotation R and factors s with `R @ diag(s) = linear`, up to a mirrored x axis; None if `linear` shears."""
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
    """Whether positive lengths are the same within the tolerance."""
    return bool(np.allclose(lengths, lengths[0], rtol=RELATIVE_TOLERANCE, atol=0))


def to_quat(rotation: Array) -> Array:
    """Unit quaternion `(w, x, y, z)` of a rotation matrix."""
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, rotation.ravel())
    return quat
