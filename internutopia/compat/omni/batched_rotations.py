"""`isaacsim.core.utils.numpy.rotations`: Euler angles, matrices, vectors and quaternions, one or many at once.

Arrays have any leading axes: quaternions `(..., 4)` scalar first, Euler angles and rotation vectors `(..., 3)`,
matrices `(..., 3, 3)`. Conventions are those of `internutopia.compat.omni.rotations`; results are float64. `device` has
no effect, as in Isaac Sim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.compat.omni.euler import (
    Array,
    euler_from_matrices,
    matrices_from_quats,
    quats_from_euler,
    quats_from_matrices,
    radians,
)
from internutopia.compat.omni.rotations import gf_quat_to_np_array

if TYPE_CHECKING:
    from pxr import Gf


def euler_angles_to_quats(
    euler_angles: Any, degrees: bool = False, extrinsic: bool = True, device: object = None
) -> Array:
    """Convert Euler angles to quaternions."""
    return quats_from_euler(radians(euler_angles, degrees), extrinsic)


def quats_to_euler_angles(
    quaternions: Any, degrees: bool = False, extrinsic: bool = True, device: object = None
) -> Array:
    """Convert quaternions to Euler angles."""
    angles = euler_from_matrices(matrices_from_quats(quaternions), extrinsic)
    return np.degrees(angles) if degrees else angles


def rot_matrices_to_quats(rotation_matrices: Any, device: object = None) -> Array:
    """Convert rotation matrices to quaternions."""
    return quats_from_matrices(rotation_matrices)


def quats_to_rot_matrices(quaternions: Any, device: object = None) -> Array:
    """Convert quaternions to rotation matrices."""
    return matrices_from_quats(quaternions)


def rotvecs_to_quats(rotation_vectors: Any, degrees: bool = False, device: object = None) -> Array:
    """Return quaternions of rotations about the vectors by their lengths."""
    vectors = radians(rotation_vectors, degrees)
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.concatenate([np.cos(0.5 * angle), 0.5 * np.sinc(0.5 * angle / np.pi) * vectors], axis=-1)


def quats_to_rotvecs(quaternions: Any, device: object = None) -> Array:
    """Return vectors about which quaternions turn, as long as the angle, which is at most pi."""
    quats = np.asarray(quaternions, np.float64)
    quats = quats * np.where(quats[..., :1] < 0, -1.0, 1.0)  # the shorter way round
    sine = np.linalg.norm(quats[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, quats[..., :1])
    with np.errstate(divide='ignore', invalid='ignore'):
        return quats[..., 1:] * np.where(sine > 0, angle / sine, 2.0)


def gf_quat_to_tensor(orientation: Gf.Quatd | Gf.Quatf | Gf.Quaternion, device: object = None) -> Array:
    """Return the quaternion `(4,)` of one of `pxr.Gf`."""
    return gf_quat_to_np_array(orientation)


def deg2rad(degree_value: Any, device: object = None) -> Array:
    """Convert degrees to radians."""
    return np.radians(degree_value)


def rad2deg(radian_value: Any, device: object = None) -> Array:
    """Convert radians to degrees."""
    return np.degrees(radian_value)


def xyzw2wxyz(q: Any, ret_torch: bool = False) -> Any:
    """Convert quaternions with the scalar last to scalar first; `ret_torch` requests a tensor of torch."""
    return _given(np.roll(q, 1, axis=-1), ret_torch)


def wxyz2xyzw(q: Any, ret_torch: bool = False) -> Any:
    """Convert quaternions with the scalar first to scalar last; `ret_torch` requests a tensor of torch."""
    return _given(np.roll(q, -1, axis=-1), ret_torch)


def _given(array: Array, as_tensor: bool) -> Any:
    if not as_tensor:
        return array
    import torch

    return torch.from_numpy(array)
