"""Handle to a camera: pictures and pose.

Pictures are rendered on request, so they always show the current state of the env, and each only once. A camera that
is moved stays where it was put on the link that carries it until the episode ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.scene import IScene, env_path
from internutopia.core.sensor.projection import camera_params
from internutopia.core.sensor.segmentation import tight_boxes
from internutopia.core.util.pose_mixin import Pose, PoseMixin
from internutopia.engines.views import CameraView
from internutopia.rendering.camera import Frame, PictureKind
from internutopia.util.arrays import to_host
from internutopia.util.bounds import MAX_SIDE

DEFAULT_RESOLUTION = (64, 64)
# the kinds of picture that each output is made of
_KINDS: dict[str, tuple[PictureKind, ...]] = {
    'rgba': ('rgba',),
    'distance_to_image_plane': ('depth',),
    'bounding_box_2d_tight': ('labels', 'occlusion'),
}


class ICamera(PoseMixin):
    """Camera in one env.

    It looks along its -z axis, +y is up in the picture (USD's convention): orientation `(-0.7071, 0, 0, 0.7071)` looks
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
        """Return the current picture `(height, width, 4)`, alpha 255."""
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
        """Return a copy of a part of the picture, rendered anew if the env has changed since the last time."""
        if picture is None:
            return None
        if self._drawn != self._world.version:
            self._view.render(np.array([self.env_id]), [self._frame])
            self._drawn = self._world.version
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
