"""`isaacsim.core.utils.rotations` and `.numpy.rotations`: Euler angles, matrices, vectors and quaternions, in float64.

Conventions are those of Isaac Sim: quaternions `(..., 4)` scalar first, matrices `(..., 3, 3)` that act on columns,
rotation vectors and Euler angles `(..., 3)`, the latter about x, y and z in this order in the array, in radians unless
`degrees=True`. Extrinsic: turned about the fixed axes x, y, z in sequence, `R = Rz Ry Rx`. Intrinsic
(`extrinsic=False`): about the axes as they have been turned so far, `R = Rx Ry Rz`. Where the angle about y is +-90
degrees, that about z is 0. `device` has no effect, as in Isaac Sim.

Functions of `numpy.rotations`, named in the plural, take any leading axes; the others take one rotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import quat_multiply, quat_to_matrix

if TYPE_CHECKING:
    from pxr import Gf

Array = NDArray[np.float64]

ONE = (
    *('euler_angles_to_quat', 'euler_to_rot_matrix', 'matrix_to_euler_angles', 'quat_to_euler_angles'),
    *('quat_to_rot_matrix', 'rot_matrix_to_quat', 'gf_quat_to_np_array', 'gf_rotation_to_np_array', 'lookat_to_quatf'),
)
"""Functions of `isaacsim.core.utils.rotations`."""
MANY = (
    *('euler_angles_to_quats', 'quats_to_euler_angles', 'rot_matrices_to_quats', 'quats_to_rot_matrices'),
    *('rotvecs_to_quats', 'quats_to_rotvecs', 'gf_quat_to_tensor', 'deg2rad', 'rad2deg', 'xyzw2wxyz', 'wxyz2xyzw'),
)
"""Functions of `isaacsim.core.utils.numpy.rotations`."""

_NO_ROTATION = 1e-10  # squared length below which a quaternion counts as none
_SINGULAR = 1e-7  # cosine of the middle angle below which the other two turn about the same axis


def euler_angles_to_quat(euler_angles: Any, degrees: bool = False, extrinsic: bool = True) -> Array:
    """Convert Euler angles to a quaternion."""
    return euler_angles_to_quats(euler_angles, degrees, extrinsic)


def euler_to_rot_matrix(euler_angles: Any, degrees: bool = False, extrinsic: bool = True) -> Array:
    """Convert Euler angles to a matrix `(3, 3)`."""
    return quats_to_rot_matrices(euler_angles_to_quats(euler_angles, degrees, extrinsic))


def matrix_to_euler_angles(mat: Any, degrees: bool = False, extrinsic: bool = True) -> Array:
    """Convert a matrix `(3, 3)` to Euler angles."""
    angles = _euler_from_matrices(np.asarray(mat)[:3, :3], extrinsic)
    return np.degrees(angles) if degrees else angles


def quat_to_euler_angles(quat: Any, degrees: bool = False, extrinsic: bool = True) -> Array:
    """Convert a quaternion to Euler angles."""
    return matrix_to_euler_angles(quat_to_rot_matrix(quat), degrees, extrinsic)


def quat_to_rot_matrix(quat: Any) -> Array:
    """Return the matrix `(3, 3)` of a quaternion of any length; the identity for one without a length."""
    quat = np.asarray(quat, np.float64)
    return quats_to_rot_matrices(quat) if quat @ quat >= _NO_ROTATION else np.eye(3)


def rot_matrix_to_quat(mat: Any) -> Array:
    """Return the quaternion of a matrix, `(3, 3)` or the upper left part of `(4, 4)`."""
    return rot_matrices_to_quats(np.asarray(mat)[:3, :3])


def gf_quat_to_np_array(orientation: Gf.Quatd | Gf.Quatf | Gf.Quaternion) -> Array:
    """Return the quaternion of one of `pxr.Gf`."""
    return np.array([orientation.GetReal(), *orientation.GetImaginary()], np.float64)


def gf_rotation_to_np_array(orientation: Gf.Rotation) -> Array:
    """Return the quaternion of a `pxr.Gf.Rotation`."""
    return gf_quat_to_np_array(orientation.GetQuat())


def lookat_to_quatf(camera: Gf.Vec3f, target: Gf.Vec3f, up: Gf.Vec3f) -> Gf.Quatf:
    """Return the orientation of a camera whose -z axis points from one point to another, +y towards `up`."""
    from pxr import Gf

    backward = np.subtract(camera, target)
    right = np.cross(up, backward)
    axes = np.stack([right, np.cross(backward, right), backward], axis=-1)
    w, x, y, z = rot_matrices_to_quats(axes / np.linalg.norm(axes, axis=0)).tolist()
    return Gf.Quatf(w, x, y, z)


def euler_angles_to_quats(
    euler_angles: Any, degrees: bool = False, extrinsic: bool = True, device: object = None
) -> Array:
    """Convert Euler angles to quaternions."""
    half = 0.5 * _radians(euler_angles, degrees)
    elementary = np.zeros((3, *half.shape[:-1], 4))
    for axis in range(3):
        elementary[axis, ..., 0] = np.cos(half[..., axis])
        elementary[axis, ..., 1 + axis] = np.sin(half[..., axis])
    x, y, z = elementary
    return quat_multiply(z, quat_multiply(y, x)) if extrinsic else quat_multiply(x, quat_multiply(y, z))


def quats_to_euler_angles(
    quaternions: Any, degrees: bool = False, extrinsic: bool = True, device: object = None
) -> Array:
    """Convert quaternions to Euler angles."""
    angles = _euler_from_matrices(quats_to_rot_matrices(quaternions), extrinsic)
    return np.degrees(angles) if degrees else angles


def rot_matrices_to_quats(rotation_matrices: Any, device: object = None) -> Array:
    """Convert rotation matrices to unit quaternions."""
    m = np.asarray(rotation_matrices, np.float64)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    x, y, z = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    # four times q_i q_j: each row is the quaternion times one of its own elements, the largest one is safe to divide by
    products = np.stack(
        [
            np.stack([1 + xx + yy + zz, x, y, z], axis=-1),
            np.stack([x, 1 + xx - yy - zz, xy, xz], axis=-1),
            np.stack([y, xy, 1 - xx + yy - zz, yz], axis=-1),
            np.stack([z, xz, yz, 1 - xx - yy + zz], axis=-1),
        ],
        axis=-2,
    )
    largest = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)
    row = np.take_along_axis(products, largest[..., None, None], axis=-2)[..., 0, :]
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


def quats_to_rot_matrices(quaternions: Any, device: object = None) -> Array:
    """Convert quaternions of any length but 0 to rotation matrices."""
    quats = np.asarray(quaternions, np.float64)
    return quat_to_matrix(quats / np.linalg.norm(quats, axis=-1, keepdims=True))


def rotvecs_to_quats(rotation_vectors: Any, degrees: bool = False, device: object = None) -> Array:
    """Return quaternions of rotations about the vectors by their lengths."""
    vectors = _radians(rotation_vectors, degrees)
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


def _radians(angles: Any, degrees: bool) -> Array:
    """Convert angles that may be in degrees to radians."""
    angles = np.asarray(angles, np.float64)
    return np.radians(angles) if degrees else angles


def _euler_from_matrices(matrices: Any, extrinsic: bool) -> Array:
    """Convert rotation matrices to Euler angles, about y within -pi/2..pi/2; where it is either, 0 about z."""
    m = np.asarray(matrices, np.float64)
    if extrinsic:
        sine, x_parts, z_parts = -m[..., 2, 0], (m[..., 2, 1], m[..., 2, 2]), (m[..., 1, 0], m[..., 0, 0])
        x_alone = np.arctan2(-m[..., 1, 2], m[..., 1, 1])
    else:
        sine, x_parts, z_parts = m[..., 0, 2], (-m[..., 1, 2], m[..., 2, 2]), (-m[..., 0, 1], m[..., 0, 0])
        x_alone = np.arctan2(m[..., 2, 1], m[..., 1, 1])
    cosine = np.hypot(*x_parts)
    singular = cosine < _SINGULAR
    x, z = np.where(singular, x_alone, np.arctan2(*x_parts)), np.where(singular, 0.0, np.arctan2(*z_parts))
    return np.stack([x, np.arctan2(sine, cosine), z], axis=-1)


def _given(array: Array, as_tensor: bool) -> Any:
    if not as_tensor:
        return array
    import torch

    return torch.from_numpy(array)
