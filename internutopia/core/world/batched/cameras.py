"""Cameras in worlds of MuJoCo models: batched views, and pictures of envs.

A camera that was moved keeps its new place on its link: the place is a model field of its env (`cam_pos`, `cam_quat`),
which starts anew with each episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.core.model.cameras import CameraLayout, camera_intrinsics
from internutopia.core.render.camera import CameraPose, Frame, Intrinsics, PictureKind, RenderRequest
from internutopia.core.util.arrays import to_host
from internutopia.core.util.rotations import (
    quat_conjugate,
    quat_multiply,
    quat_rotate,
    quat_rotate_inverse,
    quat_to_matrix,
)
from internutopia.core.world.base import Array, CameraView, EnvIds
from internutopia.core.world.batched.env_batch import EnvBatch
from internutopia.core.world.batched.view import View, ViewSlice

if TYPE_CHECKING:
    from internutopia.core.world.batched.world import BatchedWorld


@dataclass
class _Album:
    """Pictures of all envs, and what others see of them; drawn again after every change of the world."""

    frames: Frame
    shown: Mapping[PictureKind, Any] = field(default_factory=dict)
    version: int = -1


class MujocoCameraView(View, CameraView):
    """A camera, found by its name in the model."""

    def __init__(self, world: BatchedWorld, name: str):
        super().__init__(world, lambda scene: scene.cameras.get(name))
        self.name = name
        self._albums: dict[tuple[tuple[int, int], tuple[PictureKind, ...]], _Album] = {}

    def get_poses(self) -> tuple[Array, Array]:
        """See `CameraView`."""
        return self._cached('pose', ((3,), (4,)), self._fill_poses)

    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """See `CameraView`."""
        arrays = self._world.arrays
        for place in self._rows(env_ids):
            group, slots, layout = place.group, place.slots, place.segment.layout
            mount_quat = group.read('xquat')[slots, layout.body]
            if positions is not None:
                arm = arrays.asarray(positions, arrays.double)[place.mine] - group.read('xpos')[slots, layout.body]
                place.put_own(group.expand('cam_pos'), layout.camera, quat_rotate_inverse(mount_quat, arm))
            if orientations is not None:
                quat = arrays.asarray(orientations, arrays.double)[place.mine]
                quat = quat / arrays.xp.linalg.vector_norm(quat, axis=-1, keepdims=True)
                own = quat_multiply(quat_conjugate(mount_quat), quat)
                place.put_own(group.expand('cam_quat'), layout.camera, own)
            self._world.version += 1

    def get_mount_poses(self) -> tuple[Array, Array]:
        """See `CameraView`."""

        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            position, orientation = buffers
            position[segment.envs] = segment.group.read('xpos')[segment.rows, segment.layout.body]
            orientation[segment.envs] = segment.group.read('xquat')[segment.rows, segment.layout.body]

        return self._cached('mount', ((3,), (4,)), fill)

    def lens(self, env_id: int, size: tuple[int, int]) -> Intrinsics:
        """See `CameraView`."""
        scene = self._world.scene(env_id)
        return camera_intrinsics(scene.model, scene.cameras[self.name].camera, size)

    def render(self, env_ids: EnvIds, frames: Sequence[Frame]) -> None:
        """See `CameraView`."""
        positions, orientations = (to_host(values) for values in self.get_poses())
        places, rotations = positions[env_ids].astype(float), quat_to_matrix(orientations[env_ids])
        self._world.draw(
            [
                RenderRequest(env_id, CameraPose(place, rotation, self.lens(env_id, frame.size)), frame)
                for env_id, place, rotation, frame in zip(env_ids.tolist(), places, rotations, frames, strict=True)
            ]
        )

    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        """See `CameraView`."""
        world = self._world
        album = self._albums.get((size, kinds))
        if album is None:
            album = self._albums[size, kinds] = _Album(Frame.blank(size, kinds, world.env_num))
        if album.version != world.version:
            env_ids = np.flatnonzero(np.isin(world.group_id, [group.id for group in self.groups()]))
            self.render(env_ids, [album.frames.row(env_id) for env_id in env_ids.tolist()])
            album.shown = {kind: world.arrays.asarray(array) for kind, array in album.frames.pictures.items()}
            album.version = world.version
        return album.shown

    def groups(self) -> list[EnvBatch]:
        """The groups whose envs have the camera."""
        return [group for group in self._world.groups if group.used and self.name in group.scene.cameras]

    def _fill_poses(self, segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
        group, rows, layout = segment.group, segment.rows, segment.layout
        assert isinstance(layout, CameraLayout)
        mount_quat = group.read('xquat')[rows, layout.body]
        position, orientation = buffers
        offset = quat_rotate(mount_quat, group.values('cam_pos')[rows, layout.camera])
        position[segment.envs] = group.read('xpos')[rows, layout.body] + offset
        orientation[segment.envs] = quat_multiply(mount_quat, group.values('cam_quat')[rows, layout.camera])
