"""Cameras in worlds on Warp, whose pictures are ray traced: all envs of a group in one launch.

Pictures stay on the device. They are taken when they are asked for, at most once per change of the world, of all envs
at once: one env's picture costs as much as those of all. Scenes of a group may see the world through different lenses;
then there is one launch for each lens. Pictures that are taken by no camera of a model (of the whole grid, or from
anywhere) are drawn with OpenGL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from internutopia.core.model.cameras import camera_intrinsics
from internutopia.core.model.compiled import CompiledScene
from internutopia.core.render.camera import Frame, Intrinsics, PictureKind, Quality
from internutopia.core.world.base import EnvIds
from internutopia.core.world.batched.cameras import MujocoCameraView
from internutopia.core.world.warp.batch import WarpBatch
from internutopia.core.world.warp.env_batch import WarpEnvBatch
from internutopia.core.world.warp.render import FrameBuffers, RayTracer

if TYPE_CHECKING:
    from internutopia.core.world.batched.world import BatchedWorld

_Look = tuple[Intrinsics, bytes]  # what in a scene all worlds of a launch share: the lens, and the headlight


class WarpCameraView(MujocoCameraView):
    """A camera, found by its name in the model."""

    def __init__(self, world: BatchedWorld, name: str, device: wp.Device):
        super().__init__(world, name)
        self._device = device
        self._shoots: dict[tuple[tuple[int, int], tuple[PictureKind, ...]], _Shoot] = {}

    def render(self, env_ids: EnvIds, frames: Sequence[Frame]) -> None:
        """See `CameraView`; MemoryError if the pictures do not fit on the device."""
        for env_id, frame in zip(env_ids.tolist(), frames, strict=True):
            wanted = frame.pictures
            film = self._take(frame.size, tuple(wanted))
            for kind, picture in wanted.items():
                picture[:] = film.read(kind)[env_id]

    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        """See `CameraView`; MemoryError if the pictures do not fit on the device."""
        film = self._take(size, kinds)
        show = film.tensor if self._world.arrays.on_device else film.read
        return {kind: show(kind) for kind in kinds}

    def _take(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> FrameBuffers:
        """Take the pictures of all envs, unless they show them as they are now."""
        shoot = self._shoots.get((size, kinds))
        if shoot is None:
            film = FrameBuffers(self._world.env_num, size, kinds, self._device)
            shoot = self._shoots[size, kinds] = _Shoot(self.name, film, self._world.render_quality)
        shoot.take(self._world, [cast(WarpEnvBatch, group) for group in self.groups()])
        return shoot.film


class _Shoot:
    """Pictures of one size and of some kinds: those who take them, and when they did last."""

    def __init__(self, camera: str, film: FrameBuffers, quality: Quality):
        self.film = film
        self._camera = camera
        self._quality: Quality = quality
        self._version = -1  # of the world when they were taken
        self._places: list[Any] = []  # of the envs when it was found out who takes what
        self._tracers: WeakKeyDictionary[WarpBatch, dict[_Look, RayTracer]] = WeakKeyDictionary()

    def take(self, world: BatchedWorld, groups: Sequence[WarpEnvBatch]) -> None:
        """Take the pictures, unless they show the world as it is now."""
        if self._version == world.version:
            return
        places = [world.layout, *(group.batch for group in groups), *world.scenes]
        if places != self._places:
            for group in groups:
                self._tracers[group.batch] = self._tracers_of(group, world.scenes)
            self._places = places
        for group in groups:
            group.derive('cam_xpos')
            for tracer in self._tracers[group.batch].values():
                group.batch.paint(tracer.id, tracer.paint)
        self.film.exposed()
        self._version = world.version

    def _tracers_of(self, group: WarpEnvBatch, scenes: Sequence[CompiledScene | None]) -> dict[_Look, RayTracer]:
        """Tracers for a group's envs, those that it has already, if they will do."""
        rows: dict[_Look, Any] = {}
        looks: dict[CompiledScene, _Look] = {}
        for slot in np.flatnonzero(group.envs >= 0).tolist():
            env_id = int(group.envs[slot])
            scene = scenes[env_id]
            assert scene is not None
            if scene not in looks:
                looks[scene] = self._look(scene)
            rows.setdefault(looks[scene], np.full(group.capacity, -1))[slot] = env_id
        kept = self._tracers.get(group.batch, {})
        tracers: dict[_Look, RayTracer] = {}
        for look, envs in rows.items():
            tracer = kept.get(look)
            if tracer is None:
                scene = next(scene for scene, own in looks.items() if own == look)
                camera = scene.cameras[self._camera].camera
                tracer = RayTracer(
                    scene.model, group.capacity, camera, look[0], scene.geom_labels, self.film, self._quality
                )
            tracer.assign(envs)
            tracers[look] = tracer
        return tracers

    def _look(self, scene: CompiledScene) -> _Look:
        light = scene.model.vis.headlight
        shine = np.concatenate([light.ambient, light.diffuse, light.specular, [light.active]])
        return camera_intrinsics(scene.model, scene.cameras[self._camera].camera, self.film.size), shine.tobytes()
