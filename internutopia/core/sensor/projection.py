"""Projection, from pictures to geometry: camera parameters and point clouds.

Camera parameters have the names and conventions of Omniverse Replicator's `camera_params`: matrices are flattened and
act on row vectors from the right, camera axes are those of USD.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.camera import FAR, NEAR, Intrinsics
from internutopia.util.rotations import quat_to_matrix

Floats = NDArray[np.float64]

MILLIMETRES = 1000.0


def camera_params(positions: Any, orientations: Any, lens: Intrinsics, size: tuple[int, int]) -> dict[str, Floats]:
    """Return the parameters of a camera at `n` poses, a dict of arrays `(n, ...)`.

    Args:
        positions: `(n, 3)` [m], world frame.
        orientations: `(n, 4)`.
        lens: the same for all.
        size: width and height of the picture [pixels].

    Returns:
        `renderProductResolution` `(n, 2)` [pixels], `cameraFocalLength` `(n,)` [mm], `cameraAperture` `(n, 2)` [mm],
        `cameraApertureOffset` `(n, 2)` [mm], of the picture's middle to the right and up, `cameraNearFar` `(n, 2)` [m],
        `cameraViewTransform` `(n, 16)` from the world to the camera frame, `cameraProjection` `(n, 16)` from the camera
        frame to (-1..1, -1..1).
    """
    rotation, position = quat_to_matrix(orientations), np.asarray(positions, np.float64)
    n = len(position)
    view = np.zeros((n, 4, 4))
    view[:, :3, :3] = rotation
    view[:, 3, :3] = -np.einsum('ni,nij->nj', position, rotation)
    view[:, 3, 3] = 1.0
    width, focal_length = lens.aperture * MILLIMETRES, lens.focal_length * MILLIMETRES
    constant = {
        'renderProductResolution': np.array(size, np.float64),
        'cameraFocalLength': np.array(focal_length),
        'cameraAperture': np.array([width, width * lens.half_height / lens.half_width]),
        'cameraApertureOffset': focal_length * np.array(lens.centre),
        'cameraNearFar': np.array([NEAR, FAR]),
    }
    params = {key: np.repeat(value[None], n, axis=0) for key, value in constant.items()}
    params['cameraViewTransform'] = view.reshape(n, 16)
    params['cameraProjection'] = np.repeat(_projection(lens).reshape(1, 16), n, axis=0)
    return params


def intrinsic_matrix(params: Mapping[str, Any]) -> Floats:
    """Return the matrix `(3, 3)` [pixels] from points `(x to the right, y down, z ahead)` to `(u, v, 1)` times z."""
    size, aperture = np.asarray(params['renderProductResolution']), np.asarray(params['cameraAperture'])
    per_mm = size / aperture
    fx, fy = float(params['cameraFocalLength']) * per_mm
    u, v = 0.5 * size + [-1.0, 1.0] * np.asarray(params['cameraApertureOffset']) * per_mm
    return np.array([[fx, 0.0, u], [0.0, fy, v], [0.0, 0.0, 1.0]])


def point_cloud(
    depth: NDArray[np.float32], params: Mapping[str, Any], rays: Floats | None = None
) -> NDArray[np.float32]:
    """Return points `(k, 3)` [m], world frame, of the pixels of a depth picture `(height, width)` that hit a thing.

    `rays` `(height, width, 2)`: of a camera with distortion, see `Lens.rays`.
    """
    height, width = depth.shape
    projection = np.asarray(params['cameraProjection']).reshape(4, 4)
    view = np.asarray(params['cameraViewTransform']).reshape(4, 4)
    rows, columns = np.nonzero((depth > NEAR) & (depth < FAR))
    ahead = depth[rows, columns].astype(np.float64)
    scale = 1.0 if projection[3, 3] else ahead  # an orthographic picture is as large everywhere
    x = ((columns + 0.5) * 2.0 / width - 1.0 + projection[2, 0] - projection[3, 0]) / projection[0, 0] * scale
    y = (1.0 - (rows + 0.5) * 2.0 / height + projection[2, 1] - projection[3, 1]) / projection[1, 1] * scale
    if rays is not None:
        x, y = rays[rows, columns].T * (ahead, -ahead)
    points = np.stack([x, y, -ahead], axis=-1) - view[3, :3]
    return (points @ view[:3, :3].T).astype(np.float32)


def _projection(lens: Intrinsics) -> Floats:
    """Return OpenGL's projection matrix for row vectors."""
    matrix = np.zeros((4, 4))
    matrix[0, 0], matrix[1, 1] = 1.0 / lens.half_width, 1.0 / lens.half_height
    shift = lens.centre[0] / lens.half_width, lens.centre[1] / lens.half_height
    if lens.orthographic:
        matrix[3, 0], matrix[3, 1] = -shift[0], -shift[1]
        matrix[2, 2], matrix[3, 2], matrix[3, 3] = -2.0 / (FAR - NEAR), -(FAR + NEAR) / (FAR - NEAR), 1.0
    else:
        matrix[2, 0], matrix[2, 1] = shift
        matrix[2, 2], matrix[3, 2], matrix[2, 3] = -(FAR + NEAR) / (FAR - NEAR), -2.0 * FAR * NEAR / (FAR - NEAR), -1.0
    return matrix
