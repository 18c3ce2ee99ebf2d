"""`isaacsim.core.utils.rotations`: Euler angles, matrices and quaternions, one at a time.

Conventions are those of Isaac Sim, all computed in float64: quaternions `(4,)` scalar first, Euler angles `(3,)` about
x, y and z in this order in the array, extrinsic (fixed axes, x first) unless `extrinsic=False`, in radians unless
`degrees=True`. Where the angle about y is +-90 degrees, that about z is 0, and angles are in the requested unit.
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

if TYPE_CHECKING:
    from pxr import Gf

_NO_ROTATION = 1e-10  # squared length below which a quaternion counts as none


def euler_angles_to_quat(euler_angles: Any, degrees: bool = False, extrinsic: bool = True) -> Array:
    """Convert Euler angles to a quaternion."""
    return quats_from_euler(radians(euler_angles, degrees), extrinsic)


def euler_to_rot_matrix(euler_angles: Any, degrees: bool = False, extrinsic: bool = True) -> Array:
    """Convert Euler angles to a matrix `(3, 3)`."""
    return matrices_from_quats(quats_from_euler(radians(euler_angles, degrees), extrinsic))


def matrix_to_euler_angles(mat: Any, degrees: bool = False, extrinsic: bool = True) -> Array:
    """Convert a matrix `(3, 3)` to Euler angles."""
    angles = euler_from_matrices(np.asarray(mat)[:3, :3], extrinsic)
    return np.degrees(angles) if degrees else angles


def quat_to_euler_angles(quat: Any, degrees: bool = False, extrinsic: bool = True) -> Array:
    """Convert a quaternion to Euler angles."""
    return matrix_to_euler_angles(quat_to_rot_matrix(quat), degrees, extrinsic)


def quat_to_rot_matrix(quat: Any) -> Array:
    """Return the matrix `(3, 3)` of a quaternion of any length; the identity for one without a length."""
    quat = np.asarray(quat, np.float64)
    return matrices_from_quats(quat) if quat @ quat >= _NO_ROTATION else np.eye(3)


def rot_matrix_to_quat(mat: Any) -> Array:
    """Return the quaternion of a matrix, `(3, 3)` or the upper left part of `(4, 4)`."""
    return quats_from_matrices(np.asarray(mat)[:3, :3])


def gf_quat_to_np_array(orientation: Gf.Quatd | Gf.Quatf | Gf.Quaternion) -> Array:
    """Return the quaternion of one of `pxr.Gf`."""
    return np.array([orientation.GetReal(), *orientation.GetImaginary()], np.float64)


def gf_rotation_to_np_array(orientation: Gf.Rotation) -> Array:
    """Return the quaternion of a `pxr.Gf.Rotation`."""
    return gf_quat_to_np_array(orientation.GetQuat())


def lookat_to_quatf(camera: Gf.Vec3f, target: Gf.Vec3f, up: Gf.Vec3f) -> Gf.Quatf:
    """Return the orientation of a camera at a point that looks at another along its -z axis, +y towards `up`."""
    from pxr import Gf

    backward = np.subtract(camera, target)
    right = np.cross(up, backward)
    axes = np.stack([right, np.cross(backward, right), backward], axis=-1)
    w, x, y, z = quats_from_matrices(axes / np.linalg.norm(axes, axis=0)).tolist()
    return Gf.Quatf(w, x, y, z)
