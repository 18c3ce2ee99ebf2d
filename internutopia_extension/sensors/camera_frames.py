"""Images of a camera, with everything that is derived from them: rendered when they are read.

A camera keeps what an image is rendered from when it is due, so it shows that moment, whenever it is read.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterable, Set
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from internutopia.core.observations import LazyDict
from internutopia.core.scene.scene import env_path
from internutopia.core.sensor.camera import camera_params, point_cloud
from internutopia.core.sensor.segmentation import instance_segmentation, semantic_segmentation, tight_boxes
from internutopia.engines.base import World
from internutopia.engines.views import CameraView, EnvIds
from internutopia.model.semantics import SceneLabels, category_of
from internutopia.rendering.camera import Floats, Frame, Intrinsics, PictureKind
from internutopia.util.arrays import to_host
from internutopia_extension.sensors.camera_optics import OpticsView

_KINDS: dict[str, tuple[PictureKind, ...]] = {
    'rgba': ('rgba',),
    'depth': ('depth',),
    'bounding_box_2d_tight': ('labels', 'occlusion'),
    'semantic_segmentation': ('labels',),
    'instance_segmentation': ('labels',),
}
OUTPUTS = (
    *('bounding_box_2d_tight', 'landmarks', 'semantic_segmentation', 'instance_segmentation'),
    *('rgba', 'depth', 'camera_params', 'pointcloud'),
)


class _Sight(NamedTuple):
    """What outputs of an env depend on besides its images, at the moment that they show."""

    position: Any  # of the camera, world frame
    orientation: Any
    intrinsics: Intrinsics
    rays: Floats | None
    labels: SceneLabels | None


class Exposure:
    """Images of a camera in some envs at one moment.

    Reading one also renders those of the `readers`, the envs whose last image was read: a GPU renders them in
    parallel. Several threads may read.

    Attributes:
        outputs: the requested ones of `OUTPUTS`, in their order.
    """

    def __init__(
        self, view: CameraView, world: World, size: tuple[int, int], outputs: Set[str], envs: EnvIds, readers: set[int]
    ):
        self._world, self._size, self._readers = world, size, readers
        self.outputs = [output for output in OUTPUTS if output in outputs]
        kinds: list[PictureKind] = [kind for output, own in _KINDS.items() if output in outputs for kind in own]
        self._kinds = tuple(dict.fromkeys(kinds))
        self._capture = view.capture(envs, size, self._kinds) if self._kinds else None
        positions, orientations = (to_host(values) for values in view.get_poses())
        self._sights = {
            env_id: _Sight(
                positions[env_id] + world.env_origins[env_id],
                orientations[env_id].copy(),
                view.intrinsics(env_id, size),
                view.lens(env_id).rays if isinstance(view, OpticsView) and 'pointcloud' in outputs else None,
                world.labels(env_id) if 'labels' in self._kinds else None,
            )
            for env_id in envs.tolist()
        }
        self._data: dict[int, dict[str, Any]] = {}  # of envs that have been rendered
        self._lock = threading.Lock()

    def data(self, env_id: int) -> dict[str, Any]:
        """Return all requested outputs of an env. NoOpenGLError if nothing can be rendered here."""
        with self._lock:
            if env_id not in self._data:
                more = self._readers - self._data.keys()
                self._render([each for each in self._sights if each == env_id or each in more])
        self._readers.add(env_id)
        return self._data[env_id]

    def _render(self, env_ids: list[int]) -> None:
        frames = Frame.blank(self._size, self._kinds, len(env_ids))
        if self._capture is not None:
            start = time.perf_counter()
            self._capture(env_ids, [frames.row(row) for row in range(len(env_ids))])
            self._world.picture_seconds += time.perf_counter() - start
        for row, env_id in enumerate(env_ids):
            self._data[env_id] = self._outputs_of(env_id, frames.row(row), self._sights[env_id])
        if len(self._data) == len(self._sights):
            self._capture = None  # what it keeps is not needed any more

    def _outputs_of(self, env_id: int, frame: Frame, sight: _Sight) -> dict[str, Any]:
        data: dict[str, Any] = {**frame.pictures}
        path = env_path(env_id)
        if frame.labels is not None and sight.labels is not None:
            if frame.occlusion is not None:
                boxes = data['bounding_box_2d_tight'] = tight_boxes(frame.labels, frame.occlusion, sight.labels, path)
                names = [category_of(semantics) for semantics in boxes['info']['idToLabels'].values()]
                data['landmarks'] = list(dict.fromkeys(names))
            if 'semantic_segmentation' in self.outputs:
                data['semantic_segmentation'] = semantic_segmentation(frame.labels, sight.labels)
            if 'instance_segmentation' in self.outputs:
                data['instance_segmentation'] = instance_segmentation(frame.labels, sight.labels, path)
        if 'camera_params' in self.outputs:
            of_one = camera_params(sight.position[None], sight.orientation[None], sight.intrinsics, self._size)
            params = data['camera_params'] = {key: values[0] for key, values in of_one.items()}
            if 'pointcloud' in self.outputs and frame.depth is not None:
                origin = self._world.env_origins[env_id].astype(np.float32)
                data['pointcloud'] = point_cloud(frame.depth, params, sight.rays) - origin
        return {output: data[output] for output in self.outputs}


class Picture:
    """The outputs of a camera in an env at one moment."""

    def __init__(self, exposure: Exposure, env_id: int):
        self.was_read = False
        self._exposure, self._env_id = exposure, env_id

    def to_read(self) -> PictureData:
        """Return the outputs as a dict of the caller's own."""
        return PictureData(self, self._exposure.outputs)

    def read(self) -> dict[str, Any]:
        """Return the outputs as new arrays."""
        self.was_read = True
        return copy.deepcopy(self._exposure.data(self._env_id))


class PictureData(LazyDict):
    """Outputs of a camera, which are rendered when the dict is first used."""

    __slots__ = ('_picture',)

    def __init__(self, picture: Picture, keys: Iterable[str]):
        dict.update(self, dict.fromkeys(keys))
        self._picture: Picture | None = picture

    @override
    def _open(self) -> None:
        picture = self._picture  # another thread may open it meanwhile
        if picture is not None:
            dict.update(self, picture.read())
            self._picture = None

    @override
    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        picture = self._picture
        return super().__deepcopy__(memo) if picture is None else picture.to_read()
