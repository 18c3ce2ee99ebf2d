"""`isaacsim.core.utils.xforms` and `.transformations`: poses of prims of the stage, at present, and matrices.

Matrices `(4, 4)` act on columns, unlike those of USD. Quaternions are `(w, x, y, z)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.compat.omni import mirror
from internutopia.compat.omni.rotations import quat_to_rot_matrix, rot_matrix_to_quat

if TYPE_CHECKING:
    from pxr import Gf, Usd

XFORMS = ('clear_xform_ops', 'get_local_pose', 'get_world_pose', 'reset_and_set_xform_ops', 'reset_xform_ops')
"""Names of `isaacsim.core.utils.xforms`."""
TRANSFORMATIONS = (
    *('get_relative_transform', 'get_transform_with_normalized_rotation', 'get_translation_from_target'),
    *('get_world_pose_from_relative', 'pose_from_tf_matrix', 'tf_matrices_from_poses', 'tf_matrix_from_pose'),
)
"""Names of `isaacsim.core.utils.transformations`."""

Array = NDArray[np.float64]
Pose = tuple[Array, Array]


def get_world_pose(prim_path: str, fabric: bool = False) -> Pose:
    """Return position `(3,)` [m] and orientation `(4,)` of a prim in the world. ValueError if there is none."""
    return pose_from_tf_matrix(_world_matrix(mirror.existing_prim(prim_path)))


def get_local_pose(prim_path: str) -> Pose:
    """Return position `(3,)` and orientation `(4,)` of a prim in its parent's frame. ValueError if there is none."""
    return pose_from_tf_matrix(np.array(mirror.get_local_transform_matrix(mirror.existing_prim(prim_path))).T)


def clear_xform_ops(prim: Usd.Prim) -> None:
    """Remove the transform of a prim of the stage."""
    from pxr import UsdGeom

    UsdGeom.Xformable(prim).ClearXformOpOrder()


def reset_and_set_xform_ops(
    prim: Usd.Prim, translation: Gf.Vec3d, orientation: Gf.Quatd, scale: Gf.Vec3d | None = None
) -> None:
    """Give a prim of the stage one operation each for translation, orientation and scale."""
    from pxr import Gf

    attributes = mirror.pose_attributes(prim)
    attributes[0].Set(Gf.Vec3d(translation))
    attributes[1].Set(mirror.quat_of(attributes[1], (orientation.GetReal(), *orientation.GetImaginary())))
    attributes[2].Set(Gf.Vec3d(1.0, 1.0, 1.0) if scale is None else Gf.Vec3d(scale))


def reset_xform_ops(prim: Usd.Prim) -> None:
    """Express the transform of a prim of the stage by one operation each for translation, orientation and scale."""
    from pxr import Gf

    matrix = np.array(mirror.get_local_transform_matrix(prim)).T
    position, quat = pose_from_tf_matrix(matrix)
    scale = np.linalg.norm(matrix[:3, :3], axis=0)
    reset_and_set_xform_ops(prim, Gf.Vec3d(*position), Gf.Quatd(*quat), Gf.Vec3d(*scale))


def set_local_matrix(
    prim: Usd.Prim, position: Any, quat: Any, scale: Array | None = None, in_world: bool = False
) -> None:
    """Place a prim of the stage in the frame of its parent or (`in_world`) in the world; None keeps its scale."""
    from pxr import Gf

    matrix = tf_matrix_from_pose(position, quat)
    if in_world:
        matrix = np.linalg.inv(_world_matrix(prim.GetParent())) @ matrix
    if scale is None:
        scale = mirror.scale_of(mirror.get_local_transform_matrix(prim))
    translation, turn = pose_from_tf_matrix(matrix)
    factors = np.asarray(scale, float).tolist()
    reset_and_set_xform_ops(prim, Gf.Vec3d(*translation), Gf.Quatd(*turn), Gf.Vec3d(*factors))


def tf_matrix_from_pose(translation: Any, orientation: Any) -> Array:
    """Return the matrix of a pose."""
    matrix = np.eye(4)
    matrix[:3, :3] = quat_to_rot_matrix(np.asarray(orientation, float))
    matrix[:3, 3] = translation
    return matrix


def tf_matrices_from_poses(translations: Any, orientations: Any) -> Array:
    """Return the matrices `(n, 4, 4)` of n poses."""
    return np.array([tf_matrix_from_pose(*pose) for pose in zip(translations, orientations, strict=True)])


def pose_from_tf_matrix(transformation: Any) -> Pose:
    """Return position `(3,)` and orientation `(4,)` of a matrix; its scale is left out."""
    matrix = get_transform_with_normalized_rotation(transformation)
    return matrix[:3, 3].copy(), rot_matrix_to_quat(matrix[:3, :3])


def get_transform_with_normalized_rotation(transform: Any) -> Array:
    """Return a matrix without its scale."""
    matrix = np.array(transform, float)
    matrix[:3, :3] /= np.linalg.norm(matrix[:3, :3], axis=0)
    return matrix


def get_relative_transform(source_prim: Usd.Prim, target_prim: Usd.Prim) -> Array:
    """Return the matrix from the frame of one prim to that of another."""
    return np.linalg.inv(_world_matrix(target_prim)) @ _world_matrix(source_prim)


def get_translation_from_target(translation_from_source: Any, source_prim: Usd.Prim, target_prim: Usd.Prim) -> Array:
    """Return a point `(3,)` that is given in the frame of one prim in that of another."""
    point = np.array([*translation_from_source, 1.0])
    return (get_relative_transform(source_prim, target_prim) @ point)[:3]


def get_world_pose_from_relative(coord_prim: Usd.Prim, relative_translation: Any, relative_orientation: Any) -> Pose:
    """Return the pose in the world of what has a pose in the frame of a prim."""
    return pose_from_tf_matrix(
        _world_matrix(coord_prim) @ tf_matrix_from_pose(relative_translation, relative_orientation)
    )


def _world_matrix(prim: Usd.Prim) -> Array:
    return np.array(mirror.get_world_transform_matrix(prim)).T
