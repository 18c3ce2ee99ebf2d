"""Camera views in worlds of MuJoCo models, batched, and images of envs.

A camera that was moved keeps its new pose on its link: the pose is a model field of its env (`cam_pos`, `cam_quat`),
which starts again with each episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.engines.batched.env_batch import EnvBatch
from internutopia.engines.batched.view import Source, View, ViewContext, ViewSlice
from internutopia.engines.setter_checks import check_poses
from internutopia.engines.views import Array, CameraView, Capture, EnvIds
from internutopia.model.layouts import CameraLayout, camera_intrinsics
from internutopia.rendering.camera import CameraPose, Frame, Intrinsics, PictureKind, RenderRequest
from internutopia.util.arrays import to_host
from internutopia.util.rotations import (
    quat_conjugate,
    quat_multiply,
    quat_rotate,
    quat_rotate_inverse,
    quat_to_matrix,
)


@dataclass
class _CachedFrames:
    """Images of all envs, and read-only views of them; rendered again after every change of the world."""

    frames: Frame
    shown: Mapping[PictureKind, Any] = field(default_factory=dict)
    version: int = -1


class MujocoCameraView(View, CameraView):
    """A camera, found by its name in the model."""

    def __init__(self, world: ViewContext, name: str):
        super().__init__(world, lambda scene: scene.cameras.get(name))
        self.name = name
        self._cache: dict[tuple[tuple[int, int], tuple[PictureKind, ...]], _CachedFrames] = {}

    @override
    def get_poses(self) -> tuple[Array, Array]:
        return self._read('pose', ((3,), (4,)), self._poses)

    @override
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        check_poses(env_ids, self.name, positions, orientations)
        arrays = self._world.arrays
        for target in self._write_targets(env_ids):
            batch, slots, layout = target.batch, target.slots, target.view_slice.layout
            mount_quat = batch.read('xquat')[slots, 0 if layout.follows else layout.body]
            if positions is not None:
                position = arrays.asarray(positions, arrays.double)[target.rows]
                arm = position - batch.read('xpos')[slots, layout.body]
                target.assign(batch.expand('cam_pos'), (slots, layout.camera), quat_rotate_inverse(mount_quat, arm))
            if orientations is not None:
                quat = arrays.asarray(orientations, arrays.double)[target.rows]
                quat = quat / arrays.xp.linalg.vector_norm(quat, axis=-1, keepdims=True)
                own = quat_multiply(quat_conjugate(mount_quat), quat)
                target.assign(batch.expand('cam_quat'), (slots, layout.camera), own)
            self._world.version += 1

    @override
    def get_mount_poses(self) -> tuple[Array, Array]:
        def find(view_slice: ViewSlice) -> Source:
            return Source(_mount(view_slice))

        return self._read('mount', ((3,), (4,)), find)

    @override
    def intrinsics(self, env_id: int, size: tuple[int, int]) -> Intrinsics:
        scene = self._world.scene(env_id)
        return camera_intrinsics(scene.model, scene.cameras[self.name].camera, size)

    @override
    def capture(self, env_ids: EnvIds, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Capture:
        positions, orientations = (to_host(values) for values in self.get_poses())
        positions, rotations = positions[env_ids].astype(float), quat_to_matrix(orientations[env_ids])
        poses = {
            env_id: CameraPose(position, rotation, self.intrinsics(env_id, size))
            for env_id, position, rotation in zip(env_ids.tolist(), positions, rotations, strict=True)
        }
        render = self._world.capture(env_ids)
        return lambda env_ids, frames: render(
            [RenderRequest(env_id, poses[env_id], frame) for env_id, frame in zip(env_ids, frames, strict=True)]
        )

    @override
    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        world = self._world
        cached = self._cache.get((size, kinds))
        if cached is None:
            cached = self._cache[size, kinds] = _CachedFrames(Frame.blank(size, kinds, world.env_num))
        if cached.version != world.version:
            env_ids = np.flatnonzero(np.isin(world.batch_id, [env_batch.id for env_batch in self.env_batches()]))
            self.render(env_ids, [cached.frames.row(env_id) for env_id in env_ids.tolist()])
            cached.shown = {kind: world.arrays.asarray(array) for kind, array in cached.frames.pictures.items()}
            cached.version = world.version
        return cached.shown

    def env_batches(self) -> list[EnvBatch]:
        """Return the batches whose envs have the camera."""
        return [batch for batch in self._world.env_batches if batch.used and self.name in batch.scene.cameras]

    def _poses(self, view_slice: ViewSlice) -> Source:
        own = [view_slice.values(name, view_slice.layout.camera) for name in ('cam_pos', 'cam_quat')]

        def compute(position: Any, orientation: Any, offset: Any, turn: Any) -> tuple[Any, Any]:
            return position + quat_rotate(orientation, offset), quat_multiply(orientation, turn)

        return Source([*_mount(view_slice), *own], compute)


def _mount(view_slice: ViewSlice) -> list[Any]:
    """Return the position and orientation of what carries a camera; one that follows has the turn of the world body."""
    layout: CameraLayout = view_slice.layout
    return [view_slice.field('xpos', layout.body), view_slice.field('xquat', 0 if layout.follows else layout.body)]
