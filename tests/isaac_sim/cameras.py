"""Cameras of both generations: what they see is rendered by this project's own renderer, when a frame is rendered."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from internutopia.rendering.camera import PictureKind
from isaac_sim import stage as stages
from isaac_sim.physics import Floats
from isaac_sim.prims import LegacyPrims, PosedPrims
from isaac_sim.recorded import class_standing_for
from isaac_sim.simulator import current

# Annotators by name: what the renderer calls it, and number of channels
_ANNOTATORS: dict[str, tuple[PictureKind, int]] = {
    'rgb': ('rgba', 3),
    'rgba': ('rgba', 4),
    'depth': ('depth', 1),
    'distance_to_image_plane': ('depth', 1),
}


class Pictures:
    """The pictures of cameras at some prims, `size` (width, height); none before the first frame."""

    def __init__(self, paths: list[str], size: tuple[int, int], annotators: list[str]):
        if unknown := [name for name in annotators if name not in _ANNOTATORS]:
            raise ValueError(f'the stand-in has no annotators {unknown}')
        self._simulator = current()
        self._paths, self._size, self._annotators = paths, size, annotators
        self._taken: dict[str, NDArray[Any]] = {}
        self._simulator.cameras.add(self)

    def take_picture(self) -> None:
        """Draw what the cameras see now."""
        physics = self._simulator.running_physics()
        kinds: tuple[PictureKind, ...] = tuple(dict.fromkeys(_ANNOTATORS[name][0] for name in self._annotators))
        views = [physics.camera(path) for path in self._paths]
        rendered = {view: view.pictures(self._size, kinds) for view in dict.fromkeys(view for view, _ in views)}
        for name in self._annotators:
            kind, channels = _ANNOTATORS[name]
            rows = np.stack([np.asarray(rendered[view][kind])[env] for view, env in views])
            self._taken[name] = rows.reshape(*rows.shape[:3], -1)[..., :channels]

    def last(self, annotator: str) -> wp.array | None:
        """The pictures `(n, height, width, channels)` of the last frame."""
        if annotator not in self._annotators:
            raise ValueError(f'annotator {annotator!r} is not attached')
        picture = self._taken.get(annotator)
        return None if picture is None else wp.array(np.ascontiguousarray(picture), device='cpu')


class CameraPrims(PosedPrims):
    """Camera prims in the axes of USD; those on links follow them while physics runs."""

    def _camera_poses(self, indices: Any) -> tuple[Floats, Floats]:
        physics = self._simulator.physics
        if physics is None:
            return self._poses(stages.get_world_pose, indices)
        paths = [self._paths[row] for row in (range(len(self._paths)) if indices is None else np.asarray(indices))]
        rows = [(*physics.camera(path), physics.offset(path)) for path in paths]
        positions = [view.get_poses()[0][env] + offset for view, env, offset in rows]
        orientations = [view.get_poses()[1][env] for view, env, _ in rows]
        return np.array(positions, np.float32), np.array(orientations, np.float32)

    def _optics(self, attribute: str) -> Floats:
        return np.array([prim.GetAttribute(attribute).Get() for prim in self._prims], np.float32)

    def _set_optics(self, attribute: str, values: Any) -> None:
        for prim, value in zip(self._prims, np.broadcast_to(values, len(self._prims)), strict=True):
            prim.GetAttribute(attribute).Set(float(value))

    def _move_cameras(self, positions: Any, orientations: Any, indices: Any) -> None:
        physics = self._simulator.running_physics()
        rows = range(len(self._paths)) if indices is None else np.asarray(indices)
        for k, row in enumerate(rows):
            view, env = physics.camera(self._paths[row])
            position = None if positions is None else np.array([positions[k] - physics.offset(self._paths[row])])
            view.set_poses(np.array([env]), position, None if orientations is None else orientations[k : k + 1])


@class_standing_for('isaacsim.sensors.camera.CameraView')
class CameraView(CameraPrims, LegacyPrims):
    def __init__(
        self,
        prim_paths_expr: Any = None,
        name: str = 'camera_prim_view',
        camera_resolution: tuple[int, int] = (256, 256),
        output_annotators: list[str] | None = None,
    ):
        self._find(prim_paths_expr, name)
        self._pictures = Pictures(self._paths, camera_resolution, output_annotators or ['rgb', 'depth'])

    def initialize(self, physics_sim_view: Any = None) -> None:
        current().running_physics()

    def get_world_poses(self, indices: Any = None, camera_axes: str = 'world') -> tuple[Floats, Floats]:
        _check_axes(camera_axes)
        return self._camera_poses(indices)

    def set_world_poses(
        self, positions: Any = None, orientations: Any = None, indices: Any = None, camera_axes: str = 'world'
    ) -> None:
        _check_axes(camera_axes)
        self._move_cameras(positions, orientations, indices)

    def get_vertical_apertures(self) -> list[float]:
        return self._optics('verticalAperture').tolist()

    def set_horizontal_apertures(self, values: list[float]) -> None:
        self._set_optics('horizontalAperture', values)

    def get_data(self, annotator_type: str, *, tiled: bool = False) -> tuple[Any, dict[str, Any]]:
        return self._pictures.last(annotator_type), {}


@class_standing_for('isaacsim.core.experimental.objects.Camera')
class Camera(CameraPrims):
    def __init__(self, paths: Any):
        self._find(paths, 'cameras')

    @property
    def paths(self) -> list[str]:
        return list(self._paths)

    def get_world_poses(self) -> tuple[wp.array, wp.array]:
        positions, orientations = self._camera_poses(None)
        return wp.array(positions, device='cpu'), wp.array(orientations, device='cpu')

    def set_world_poses(self, positions: Any = None, orientations: Any = None, *, indices: Any = None) -> None:
        self._move_cameras(positions, orientations, indices)

    def get_apertures(self) -> tuple[wp.array, wp.array]:
        apertures = (self._optics(name) for name in ('horizontalAperture', 'verticalAperture'))
        horizontal, vertical = (wp.array(aperture, device='cpu') for aperture in apertures)
        return horizontal, vertical

    def set_apertures(self, horizontal_apertures: Any = None) -> None:
        self._set_optics('horizontalAperture', horizontal_apertures)

    def set_focal_lengths(self, focal_lengths: Any) -> None:
        self._set_optics('focalLength', focal_lengths)


@class_standing_for('isaacsim.sensors.experimental.rtx.TiledCameraSensor')
class TiledCameraSensor:
    def __init__(self, paths: Any, *, resolution: tuple[int, int], annotators: Any):
        self.camera = Camera(paths)
        annotators = [annotators] if isinstance(annotators, str) else list(annotators)
        self._pictures = Pictures(self.camera.paths, (resolution[1], resolution[0]), annotators)

    def get_data(self, annotator: str, *, tiled: bool = False) -> tuple[wp.array | None, dict[str, Any]]:
        return self._pictures.last(annotator), {}


def _check_axes(camera_axes: str) -> None:
    if camera_axes != 'usd':
        raise NotImplementedError(f'the stand-in has cameras in the axes of USD, not camera_axes={camera_axes!r}')
