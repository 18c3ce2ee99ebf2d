"""Pictures that a camera took in some envs, with everything that is derived from them."""

from __future__ import annotations

import time
from collections.abc import Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.scene import env_path
from internutopia.core.sensor.camera import camera_params, point_cloud
from internutopia.core.sensor.segmentation import instance_segmentation, semantic_segmentation, tight_boxes
from internutopia.engines.base import World
from internutopia.engines.views import CameraView, EnvIds
from internutopia.model.semantics import category_of
from internutopia.rendering.camera import Frame, PictureKind
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


class Pictures:
    """The last pictures of `n` envs; `outputs` are the requested ones of `OUTPUTS`."""

    def __init__(self, view: CameraView, world: World, size: tuple[int, int], outputs: Set[str], n: int):
        self._view, self._world, self._size, self._outputs = view, world, size, outputs
        kinds: list[PictureKind] = [kind for output, own in _KINDS.items() if output in outputs for kind in own]
        self._frames = Frame.blank(size, kinds, n)
        self._data: dict[str, Any] = {}
        self._n = n

    def take(self, env_ids: EnvIds, rows: EnvIds) -> None:
        """Render envs, each into its row. NoOpenGLError if nothing can be rendered here."""
        if not len(env_ids):
            return
        frames, data = self._frames, self._data
        if frames.pictures:
            start = time.perf_counter()
            self._view.render(env_ids, [frames.row(row) for row in rows.tolist()])
            self._world.picture_seconds += time.perf_counter() - start
        if frames.labels is not None:
            self._find_things(frames.labels, frames.occlusion, env_ids, rows)
        if frames.rgba is not None:
            data['rgba'] = frames.rgba
        if frames.depth is not None:
            data['depth'] = frames.depth
        if 'camera_params' in self._outputs:
            self._describe(env_ids, rows)
        if 'pointcloud' in self._outputs and frames.depth is not None:
            clouds = data.setdefault('pointcloud', [None] * self._n)
            for env_id, row in zip(env_ids.tolist(), rows.tolist(), strict=True):
                params = {key: values[row] for key, values in data['camera_params'].items()}
                origin = self._world.env_origins[env_id].astype(np.float32)
                rays = self._view.lens(env_id).rays if isinstance(self._view, OpticsView) else None
                clouds[row] = point_cloud(frames.depth[row], params, rays) - origin

    def adopt(self, other: Pictures, rows: EnvIds) -> None:
        """Take over rows of other pictures of the same outputs."""
        _copy_rows(other._data, self._data, rows)

    def data(self) -> dict[str, Any]:
        """Return all requested outputs, arrays `(n, ...)`, lists with `n` entries where sizes differ."""
        return self._data

    def _find_things(
        self, labels: NDArray[np.int32], occlusion: NDArray[np.float32] | None, env_ids: EnvIds, rows: EnvIds
    ) -> None:
        """Compute the outputs derived from pictures of labels."""
        n, data = self._n, self._data
        for env_id, row in zip(env_ids.tolist(), rows.tolist(), strict=True):
            scene, path = self._world.labels(env_id), env_path(env_id)
            if occlusion is not None:
                found = tight_boxes(labels[row], occlusion[row], scene, path)
                boxes = data.setdefault('bounding_box_2d_tight', {'data': [None] * n, 'info': [None] * n})
                boxes['data'][row], boxes['info'][row] = found['data'], found['info']
                if 'landmarks' in self._outputs:
                    names = [category_of(semantics) for semantics in found['info']['idToLabels'].values()]
                    data.setdefault('landmarks', [[]] * n)[row] = list(dict.fromkeys(names))
            segmentations: dict[str, dict[str, Any]] = {}
            if 'semantic_segmentation' in self._outputs:
                segmentations['semantic_segmentation'] = semantic_segmentation(labels[row], scene)
            if 'instance_segmentation' in self._outputs:
                segmentations['instance_segmentation'] = instance_segmentation(labels[row], scene, path)
            for output, found in segmentations.items():
                stored = data.setdefault(output, {'data': np.zeros(labels.shape, np.uint32), 'info': [None] * n})
                stored['data'][row], stored['info'][row] = found['data'], found['info']

    def _describe(self, env_ids: EnvIds, rows: EnvIds) -> None:
        """Compute the camera parameters: intrinsics may differ between scenes."""
        positions, orientations = (to_host(values) for values in self._view.get_poses())
        world_positions = positions[env_ids] + self._world.env_origins[env_ids]
        intrinsics = [self._view.intrinsics(env_id, self._size) for env_id in env_ids.tolist()]
        for distinct in dict.fromkeys(intrinsics):
            mine = np.array([own == distinct for own in intrinsics])
            params = camera_params(world_positions[mine], orientations[env_ids[mine]], distinct, self._size)
            stored: dict[str, NDArray[np.float64]] = self._data.setdefault('camera_params', {})
            for key, values in params.items():
                if key not in stored:
                    stored[key] = np.zeros((self._n, *values.shape[1:]))
                stored[key][rows[mine]] = values


def _copy_rows(source: dict[str, Any], target: dict[str, Any], rows: EnvIds) -> None:
    for key, values in source.items():
        if isinstance(values, dict):
            _copy_rows(values, target.setdefault(key, {}), rows)
        elif isinstance(values, list):
            kept = target.setdefault(key, [None] * len(values))
            for row in rows.tolist():
                kept[row] = values[row]
        else:
            target.setdefault(key, np.zeros_like(values))[rows] = values[rows]
