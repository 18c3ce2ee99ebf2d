"""Camera views in worlds on Warp, whose pictures are ray traced: all envs of a batch in one launch.

Pictures stay on the device. They are taken on request, at most once per change of the world, of all envs
at once: one env's picture costs as much as those of all. Scenes of a batch may see the world through different
intrinsics; then there is one launch for each of them. Pictures that are taken by no camera of a model (of the whole
grid, or from anywhere) are rendered with OpenGL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp
from typing_extensions import override

from internutopia.engines.batched.cameras import MujocoCameraView
from internutopia.engines.batched.view import ViewContext
from internutopia.engines.views import EnvIds
from internutopia.engines.warp.batch import WarpBatch
from internutopia.engines.warp.env_batch import WarpEnvBatch
from internutopia.engines.warp.render import FrameBuffers, RayTracer
from internutopia.model.camera_layouts import camera_intrinsics
from internutopia.model.compiled import CompiledScene
from internutopia.rendering.camera import Frame, Intrinsics, PictureKind, Quality

_SharedView = tuple[Intrinsics, bytes]  # what all worlds of a launch share: the intrinsics, and the headlight


class WarpCameraView(MujocoCameraView):
    """A camera, found by its name in the model."""

    def __init__(self, world: ViewContext, name: str, device: wp.Device):
        super().__init__(world, name)
        self._device = device
        self._raytraced: dict[tuple[tuple[int, int], tuple[PictureKind, ...]], _RaytracedFrames] = {}

    @override
    def render(self, env_ids: EnvIds, frames: Sequence[Frame]) -> None:
        """Render pictures. MemoryError if they do not fit on the device. Occlusion is not measured, it is nan."""
        for env_id, frame in zip(env_ids.tolist(), frames, strict=True):
            if frame.occlusion is not None:
                frame.occlusion[:] = np.nan
            requested = replace(frame, occlusion=None).pictures
            buffers = self._take(frame.size, tuple(requested))
            for kind, picture in requested.items():
                picture[:] = buffers.read(kind)[env_id]

    @override
    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        """Return the pictures of all envs; MemoryError if they do not fit on the device."""
        buffers = self._take(size, kinds)
        show = buffers.tensor if self._world.arrays.on_device else buffers.read
        return {kind: show(kind) for kind in kinds}

    def _take(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> FrameBuffers:
        """Take the pictures of all envs, unless they show them as they are now."""
        frames = self._raytraced.get((size, kinds))
        if frames is None:
            buffers = FrameBuffers(self._world.env_num, size, kinds, self._device)
            frames = self._raytraced[size, kinds] = _RaytracedFrames(self.name, buffers, self._world.render_quality)
        frames.take(self._world, [cast(WarpEnvBatch, env_batch) for env_batch in self.env_batches()])
        return frames.buffers


class _RaytracedFrames:
    """Pictures of one size and of some kinds: the tracers that take them, and when they did last."""

    def __init__(self, camera: str, buffers: FrameBuffers, quality: Quality):
        self.buffers = buffers
        self._camera = camera
        self._quality: Quality = quality
        self._version = -1  # of the world when they were taken
        self._traced: list[Any] = []  # what the tracers were made for
        self._tracers: WeakKeyDictionary[WarpBatch, dict[_SharedView, RayTracer]] = WeakKeyDictionary()

    def take(self, world: ViewContext, env_batches: Sequence[WarpEnvBatch]) -> None:
        """Take the pictures, unless they show the world as it is now."""
        if self._version == world.version:
            return
        traced = [world.placement, *(env_batch.batch for env_batch in env_batches), *world.scenes]
        if traced != self._traced:
            for env_batch in env_batches:
                self._tracers[env_batch.batch] = self._tracers_of(env_batch, world.scenes)
            self._traced = traced
        for env_batch in env_batches:
            env_batch.derive('cam_xpos')
            for tracer in self._tracers[env_batch.batch].values():
                env_batch.batch.trace('render', tracer, tracer.render)
        self.buffers.invalidate()
        self._version = world.version

    def _tracers_of(
        self, env_batch: WarpEnvBatch, scenes: Sequence[CompiledScene | None]
    ) -> dict[_SharedView, RayTracer]:
        """Return tracers for the envs of a batch, existing ones where they fit."""
        envs_of: dict[_SharedView, Any] = {}
        views: dict[CompiledScene, _SharedView] = {}
        for slot in np.flatnonzero(env_batch.envs >= 0).tolist():
            env_id = int(env_batch.envs[slot])
            scene = scenes[env_id]
            assert scene is not None
            if scene not in views:
                views[scene] = self._shared_view(scene)
            envs_of.setdefault(views[scene], np.full(env_batch.capacity, -1))[slot] = env_id
        kept = self._tracers.get(env_batch.batch, {})
        tracers: dict[_SharedView, RayTracer] = {}
        for view, envs in envs_of.items():
            tracer = kept.get(view)
            if tracer is None:
                scene = next(scene for scene, own in views.items() if own == view)
                camera = scene.cameras[self._camera].camera
                tracer = RayTracer(
                    scene.model,
                    env_batch.capacity,
                    camera,
                    view[0],
                    scene.labels.geom_labels,
                    self.buffers,
                    self._quality,
                )
            tracer.assign(envs)
            tracers[view] = tracer
        return tracers

    def _shared_view(self, scene: CompiledScene) -> _SharedView:
        light = scene.model.vis.headlight
        headlight = np.concatenate([light.ambient, light.diffuse, light.specular, [light.active]])
        intrinsics = camera_intrinsics(scene.model, scene.cameras[self._camera].camera, self.buffers.size)
        return intrinsics, headlight.tobytes()
