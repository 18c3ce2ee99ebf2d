"""Camera views on Isaac Sim, batched, rendered with its RTX renderer.

Pictures are rendered on request, once per change of the world: sensors request them at the rendering interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.isaac.api import CameraHandle, Size
from internutopia.engines.isaac.env_prims import EnvPrims
from internutopia.engines.isaac.usd_assets import path_below
from internutopia.engines.isaac.view import EnvHandle, IsaacContext, IsaacView
from internutopia.engines.setter_checks import check_finite, check_orientations
from internutopia.engines.views import Array, CameraView, EnvIds
from internutopia.model.asset_paths import resolve
from internutopia.model.camera_layouts import camera_intrinsics
from internutopia.model.compose import robot_prefix
from internutopia.rendering.camera import Frame, Intrinsics, PictureKind
from internutopia.util.rotations import quat_conjugate, quat_multiply, quat_rotate, quat_rotate_inverse

_FIRST_FRAMES = 8  # that may be rendered before there is a picture of new cameras
# What Isaac Sim calls a kind of picture
_ANNOTATORS: dict[PictureKind, str] = {'rgba': 'rgba', 'depth': 'distance_to_image_plane'}


@dataclass
class _CachedFrames:
    """Cameras that take pictures of one size and kind, and the last pictures they took."""

    cameras: EnvHandle[CameraHandle]
    frames: Frame
    version: int = -1


class IsaacCameraView(IsaacView, CameraView):
    """A camera, by its name in the host's model; of a robot, or (None) of the scene."""

    def __init__(self, world: IsaacContext, name: str, robot: str | None, added: bool):
        super().__init__(world)
        self.name = name
        self._robot = robot
        self._added = added  # beside the cameras of the assets
        self._cache: dict[tuple[Size, tuple[PictureKind, ...]], _CachedFrames] = {}
        # where the camera is on its link, `(env_num, 3)` and `(env_num, 4)`; NaN: where its model has it
        self._local_poses = np.full((world.env_num, 3), np.nan), np.full((world.env_num, 4), np.nan)
        self._was_moved = False  # on this stage or before: then the poses of cameras are written to Isaac Sim

    @override
    def get_poses(self) -> tuple[Array, Array]:
        def fill(buffers: tuple[Array, ...]) -> None:
            mounts, turns = self.get_mount_poses()
            positions, orientations = self._on_mount()
            buffers[0][:] = mounts + quat_rotate(turns, positions)
            buffers[1][:] = quat_multiply(turns, orientations)

        return self._cached('pose', ((3,), (4,)), fill)

    @override
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        check_finite(env_ids, self.name, 'position', positions)
        check_orientations(env_ids, self.name, orientations)
        env_ids = np.asarray(env_ids, np.intp)
        mounts, turns = (values[env_ids] for values in self.get_mount_poses())
        if positions is not None:
            self._local_poses[0][env_ids] = quat_rotate_inverse(turns, np.asarray(positions) - mounts)
        if orientations is not None:
            quat = np.asarray(orientations, np.float64)
            quat = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
            self._local_poses[1][env_ids] = quat_multiply(quat_conjugate(turns), quat)
        self._was_moved = True
        self._world.version += 1

    @override
    def get_mount_poses(self) -> tuple[Array, Array]:
        def fill(buffers: tuple[Array, ...]) -> None:
            buffers[1][:, 0] = 1.0  # what is fixed to the scene hangs on the env's own frame
            for env_id in self._envs():
                compiled = self._world.compiled(env_id)
                body = compiled.cameras[self.name].body
                if body:
                    data = self._world.host_data(env_id)
                    buffers[0][env_id], buffers[1][env_id] = data.xpos[body], data.xquat[body]

        return self._cached('mount', ((3,), (4,)), fill)

    @override
    def intrinsics(self, env_id: int, size: Size) -> Intrinsics:
        compiled = self._world.compiled(env_id)
        return camera_intrinsics(compiled.model, compiled.cameras[self.name].camera, size)

    @override
    def render(self, env_ids: EnvIds, frames: Sequence[Frame]) -> None:
        for env_id, frame in zip(np.asarray(env_ids).tolist(), frames, strict=True):
            taken = self.pictures(frame.size, tuple(frame.pictures))
            for kind, picture in frame.pictures.items():
                picture[:] = taken[kind][env_id]

    @override
    def pictures(self, size: Size, kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        """Return the pictures of all envs; NotImplementedError for labels, which Isaac Sim does not support."""
        if 'labels' in kinds:
            raise NotImplementedError("backend 'isaac_sim' cannot tell objects apart in pictures (bounding boxes)")
        cached = self._cache.get((size, kinds))
        if cached is None:
            annotators = [_ANNOTATORS[kind] for kind in kinds]

            def make(paths: list[str]) -> CameraHandle:
                return self._world.sim.cameras(paths, size, annotators, added=self._added)

            cameras = EnvHandle(self._world, self._find, make)
            cached = self._cache[size, kinds] = _CachedFrames(cameras, Frame.blank(size, kinds, self._world.env_num))
        if cached.version != self._world.version:
            self._take(cached)
            cached.version = self._world.version
        return cached.frames.pictures

    def reset(self, env_ids: Sequence[int]) -> None:
        """Put the cameras of envs that start an episode back on their links."""
        for local in self._local_poses:
            local[env_ids] = np.nan

    def _take(self, cached: _CachedFrames) -> None:
        envs = cached.cameras.envs
        rows = cached.cameras.rows[envs][:, 0]
        if self._was_moved:
            positions, orientations = (values[envs] for values in self.get_poses())
            cached.cameras.handle.set_poses(positions + self._world.env_origins[envs], orientations, rows)
        self._world.sim.render()
        for kind, array in cached.frames.pictures.items():
            picture = self._picture(cached.cameras.handle, _ANNOTATORS[kind])
            array[envs] = (picture if kind == 'rgba' else picture[..., 0])[rows]

    def _picture(self, cameras: CameraHandle, annotator: str) -> NDArray[Any]:
        for _ in range(_FIRST_FRAMES):
            picture = cameras.picture(annotator)
            if picture is not None and picture.size:
                return picture
            self._world.sim.render()
        raise RuntimeError(f'camera {self.name!r}: Isaac Sim has rendered no {annotator} after {_FIRST_FRAMES} frames')

    def _find(self, prims: EnvPrims) -> tuple[str, ...] | None:
        if self.name not in prims.compiled.cameras:
            return None
        spec = prims.spec
        if self._robot is None:
            assert spec.asset is not None
            return (f'/scene/{path_below(resolve(spec.asset), self.name.removeprefix("scene/"))}',)
        robot = next(robot for robot in spec.robots if robot.name == self._robot)
        own = self.name.removeprefix(robot_prefix(self._robot))
        if self._added:
            return (prims.camera(self._robot, own),)
        return (f'{prims.robot(self._robot)}/{path_below(resolve(robot.asset), own)}',)

    def _envs(self) -> list[int]:
        return [i for i, prims in self._world.running.items() if self.name in prims.compiled.cameras]

    def _on_mount(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        positions, orientations = (local.copy() for local in self._local_poses)
        for env_id in self._envs():
            compiled = self._world.compiled(env_id)
            camera = compiled.cameras[self.name].camera
            for local, own in ((positions, compiled.model.cam_pos), (orientations, compiled.model.cam_quat)):
                if np.isnan(local[env_id]).any():
                    local[env_id] = own[camera]
        return positions, orientations
