"""Camera views on Isaac Sim: colour and depth by its RTX renderer, all envs in one tiled image.

Labels, and images with labels, are those of the host's renderer.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.cameras import MujocoCameraView
from internutopia.engines.batched.view import ViewContext
from internutopia.engines.isaac.visuals import Visuals
from internutopia.engines.views import Capture, EnvIds, copying
from internutopia.rendering.camera import PictureKind

_FIRST_FRAMES = 8  # that may be rendered before there is an image of new cameras
# What Isaac Sim calls a kind of image
_ANNOTATORS: dict[PictureKind, str] = {'rgba': 'rgba', 'depth': 'distance_to_image_plane'}

Kind = tuple[tuple[int, int], tuple[PictureKind, ...]]


class IsaacCameraView(MujocoCameraView):
    """A camera, found by its name in the model."""

    def __init__(self, world: ViewContext, name: str, visuals: Visuals):
        super().__init__(world, name)
        self._visuals = visuals
        self._sensors: dict[Kind, tuple[tuple[object, ...], Any]] = {}  # and what they were made of

    @override
    def capture(self, env_ids: EnvIds, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Capture:
        """Render images at once: the renderer shows the stage as it is."""
        if set(kinds) - _ANNOTATORS.keys():
            return super().capture(env_ids, size, kinds)
        return copying(env_ids, self._take(env_ids, size, kinds))

    def _take(
        self, env_ids: EnvIds, size: tuple[int, int], kinds: tuple[PictureKind, ...]
    ) -> dict[PictureKind, NDArray[Any]]:
        """Return new images of some envs, by kind."""
        positions, orientations = (values[env_ids].astype(float) for values in self.get_poses())
        optics = [self.intrinsics(env_id, size) for env_id in env_ids.tolist()]
        paths = self._visuals.place_cameras(
            f'{self.name} {size[0]}x{size[1]}', env_ids, positions, orientations, optics
        )
        sensor = self._sensor(paths, size, kinds)
        self._visuals.render()
        taken: dict[PictureKind, NDArray[Any]] = {}
        for kind in kinds:
            picture = self._picture(sensor, _ANNOTATORS[kind])
            taken[kind] = (picture if kind == 'rgba' else picture[..., 0]).copy()
        return taken

    def _sensor(self, paths: list[str], size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Any:
        key = self._visuals.kit.generation, *paths
        made_of, sensor = self._sensors.get((size, kinds), ((), None))
        if made_of != key:
            sensor = self._visuals.sim.cameras(paths, size, [_ANNOTATORS[kind] for kind in kinds])
            self._sensors[size, kinds] = key, sensor
        return sensor

    def _picture(self, sensor: Any, annotator: str) -> NDArray[Any]:
        for _ in range(_FIRST_FRAMES):
            data, _ = sensor.get_data(annotator)
            if data is not None and data.numpy().size:
                return data.numpy()
            self._visuals.sim.render()
        raise RuntimeError(f'camera {self.name!r}: Isaac Sim has rendered no {annotator} after {_FIRST_FRAMES} frames')
