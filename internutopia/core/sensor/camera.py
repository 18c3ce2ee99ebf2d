"""Handle to a camera: images, pose, and the projection of points.

Images are rendered on request, so they always show the current state of the env, and each only once. A camera that
is moved stays where it was put on the link that carries it until the episode ends.

Camera parameters have the names and conventions of Omniverse Replicator's `camera_params`: matrices are flattened and
act on row vectors from the right, camera axes are those of USD.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.scene import IScene, env_path
from internutopia.core.sensor.segmentation import tight_boxes
from internutopia.core.util.pose_mixin import Pose, PoseMixin
from internutopia.engines.views import CameraView
from internutopia.rendering.camera import FAR, NEAR, Frame, Intrinsics, PictureKind
from internutopia.util.arrays import to_host
from internutopia.util.bounds import MAX_SIDE
from internutopia.util.rotations import quat_to_matrix

Floats = NDArray[np.float64]

MILLIMETRES = 1000.0


def camera_params(positions: Any, orientations: Any, lens: Intrinsics, size: tuple[int, int]) -> dict[str, Floats]:
    """Return the parameters of a camera at `n` poses, a dict of arrays `(n, ...)`.

    Args:
        positions: `(n, 3)` [m], world frame.
        orientations: `(n, 4)`.
        lens: the same for all.
        size: width and height of the image [pixels].

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
    """Return points `(k, 3)` [m], world frame, of the pixels of a depth image `(height, width)` that hit a thing.

    `rays` `(height, width, 2)`: of a camera with distortion, see `Lens.rays`.
    """
    height, width = depth.shape
    projection = np.asarray(params['cameraProjection']).reshape(4, 4)
    view = np.asarray(params['cameraViewTransform']).reshape(4, 4)
    rows, columns = np.nonzero((depth > NEAR) & (depth < FAR))
    ahead = depth[rows, columns].astype(np.float64)
    scale = 1.0 if projection[3, 3] else ahead  # an orthographic image is as large everywhere
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


DEFAULT_RESOLUTION = (64, 64)
# the kinds of image that each output is made of
_KINDS: dict[str, tuple[PictureKind, ...]] = {
    'rgba': ('rgba',),
    'distance_to_image_plane': ('depth',),
    'bounding_box_2d_tight': ('labels', 'occlusion'),
}


class ICamera(PoseMixin):
    """Camera in one env.

    It looks along its -z axis, +y is up in the image (USD's convention): orientation `(-0.7071, 0, 0, 0.7071)` looks
    straight down. Getters return new arrays, or None for data that was not requested at creation.
    """

    def __init__(
        self,
        view: CameraView,
        scene: IScene,
        name: str,
        prim_path: str,
        resolution: tuple[int, int],
        outputs: frozenset[str],
    ):
        self.name = name
        self.prim_path = prim_path
        self.resolution = resolution
        self.env_id: int = scene.env_id
        self.offset: list[float] = scene.world.env_origins[scene.env_id].tolist()
        self._view = view
        self._world = scene.world
        self._outputs = outputs
        wanted: list[PictureKind] = [kind for output, own in _KINDS.items() if output in outputs for kind in own]
        self._frame = Frame.blank(resolution, wanted)
        self._drawn = -1

    @classmethod
    def create(
        cls,
        simulator_type: str = 'isaac_sim',
        name: str = 'camera',
        prim_path: str | None = None,
        rgba: bool = True,
        distance_to_image_plane: bool = False,
        bounding_box_2d_tight: bool = False,
        camera_params: bool = False,
        resolution: tuple[int, int] | None = None,
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
    ) -> ICamera:
        """Create the handle of the camera at a prim path such as `/World/env_0/robots/h1/logo_link/Camera`.

        Args:
            simulator_type: accepted for 2.x scripts.
            name: its name.
            prim_path: its prim path; it must be part of the task's scene.
            rgba: True to enable `get_rgba`; the others likewise.
            distance_to_image_plane: depth.
            bounding_box_2d_tight: boxes around labelled things.
            camera_params: intrinsics and pose.
            resolution: width and height [pixels]; None means (64, 64).
            position: position to move it to, env frame [m].
            translation: the same relative to its parent prim.
            orientation: orientation to turn it to, in the frame of `position` or else `translation`.

        Raises:
            ValueError: there is no such camera, or the resolution is not positive.
            KeyError: the path is in no loaded env.
        """
        if prim_path is None:
            raise ValueError('ICamera.create needs a prim_path')
        size = checked_resolution(resolution or DEFAULT_RESOLUTION)
        wanted = {
            'rgba': rgba,
            'distance_to_image_plane': distance_to_image_plane,
            'bounding_box_2d_tight': bounding_box_2d_tight,
            'camera_params': camera_params,
        }
        scene = IScene.at(prim_path)
        outputs = frozenset(output for output, asked in wanted.items() if asked)
        camera = cls(scene.camera_at(prim_path), scene, name, prim_path, size, outputs)
        if translation is not None:
            camera.set_local_pose(translation, orientation)
        elif position is not None or orientation is not None:
            camera.set_pose(position, orientation)
        return camera

    def get_rgba(self) -> NDArray[np.uint8] | None:
        """Return the current image `(height, width, 4)`, alpha 255."""
        return self._copy(self._frame.rgba)

    def get_distance_to_image_plane(self) -> NDArray[np.float32] | None:
        """Return the distance along the viewing direction `(height, width)` [m], infinite where nothing is."""
        return self._copy(self._frame.depth)

    def get_bounding_box_2d_tight(self) -> dict[str, Any] | None:
        """Return boxes around the visible part of each labelled thing, see `tight_boxes`."""
        labels, occlusion = self._copy(self._frame.labels), self._copy(self._frame.occlusion)
        if labels is None:
            return None
        return tight_boxes(labels, occlusion, self._world.labels(self.env_id), env_path(self.env_id))

    def get_camera_params(self) -> dict[str, NDArray[np.float64]] | None:
        """Return intrinsics and pose, see `core.sensor.projection.camera_params`, without a leading axis."""
        if 'camera_params' not in self._outputs:
            return None
        position, orientation = self.get_pose()
        lens = self._view.intrinsics(self.env_id, self.resolution)
        params = camera_params((position + np.array(self.offset))[None], orientation[None], lens, self.resolution)
        return {key: values[0] for key, values in params.items()}

    def get_pose(self) -> Pose:
        """Return position `(3,)` [m] and orientation `(4,)` in the env frame."""
        position, orientation = self._view.get_poses()
        return to_host(position[self.env_id]).copy(), to_host(orientation[self.env_id]).copy()

    def set_pose(self, position: Any = None, orientation: Any = None) -> None:
        """Move to a pose in the env frame; None leaves position or orientation as it is."""
        rows = (None if value is None else np.asarray(value, np.float64)[None] for value in (position, orientation))
        self._view.set_poses(np.array([self.env_id]), *rows)

    def cleanup(self) -> None:
        """Do nothing; accepted for 2.x scripts: there is nothing to free."""

    def _parent_pose(self) -> Pose:
        position, orientation = self._view.get_mount_poses()
        return to_host(position[self.env_id]), to_host(orientation[self.env_id])

    def _copy(self, picture: NDArray[Any] | None) -> Any:
        """Return a copy of a part of the image, rendered again if the env has changed since the last time."""
        if picture is None:
            return None
        if self._drawn != self._world.picture_version:
            self._view.render(np.array([self.env_id]), [self._frame])
            self._drawn = self._world.picture_version
        return picture.copy()


def checked_resolution(resolution: Any) -> tuple[int, int]:
    """Return width and height [pixels] as ints. ValueError if they are not a pair, not positive or too large."""
    if np.shape(resolution) != (2,):
        raise ValueError(f'resolution {resolution!r}: expected (width, height)')
    width, height = (int(value) for value in resolution)
    if width < 1 or height < 1:
        raise ValueError(f'resolution {resolution!r}: width and height must be positive')
    if max(width, height) > MAX_SIDE:
        raise ValueError(f'resolution {resolution!r}: width and height may be {MAX_SIDE} pixels at most')
    return width, height
