"""Camera views in worlds on Warp, whose images are ray traced: all envs of a batch in one launch.

Images stay on the device. They are rendered on request, at most once per change of the world, for all envs at once: one
env's image costs as much as the images of all envs. If scenes of a batch have cameras with different intrinsics, there
is one launch for each of these. Images without a camera in a model (of the whole grid, or from any pose) are rendered
with OpenGL.

Rendering is a fixed sequence of kernels without access to the host, so it can be captured in a CUDA graph.
The engine casts one ray through the centre of each pixel, here by `Intrinsics`, so that images cover what OpenGL's
cover. Geoms and flexible bodies are rendered, in the geom groups that OpenGL shows; tendons,
skins and transparency are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast
from weakref import WeakKeyDictionary

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.cameras import MujocoCameraView
from internutopia.engines.batched.view import ViewContext
from internutopia.engines.views import Capture, EnvIds, copying
from internutopia.engines.warp.arrays import HostMirror, memory_checked
from internutopia.engines.warp.batch import WarpBatch
from internutopia.engines.warp.env_batch import WarpEnvBatch
from internutopia.model.compiled import CompiledScene
from internutopia.model.layouts import camera_intrinsics
from internutopia.rendering.camera import BACKGROUND, FAR, NEAR, UNLABELLED, Intrinsics, PictureKind, Quality
from internutopia.rendering.geom_groups import SHOWN_GROUPS

# pyright: reportIndexIssue=false, reportAttributeAccessIssue=false, reportAssignmentType=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false
# (kernels are compiled by Warp, whose arrays have no types for what kernels do with them)


wp.set_module_options({'enable_backward': False})  # else compiling takes several times as long

_SEEN = [int(group) for group in np.flatnonzero(SHOWN_GROUPS)]
# Where in a pixel its rays go through, to the right of its centre and below [pixels]. Depth and labels are those of the
# first ray; 'full' images have the mean colour of all: the centre, and three points around it
_SAMPLES: dict[Quality, NDArray[np.float64]] = {
    'plain': np.zeros((1, 2)),
    'fast': np.zeros((1, 2)),
    'full': np.array([[0.0, 0.0], [0.0, -1 / 3], [3**0.5 / 6, 1 / 6], [-(3**0.5) / 6, 1 / 6]]),
}


class FrameBuffers:
    """Images of all envs on a device, `(env_num, ...)`, see `Frame`."""

    def __init__(self, env_num: int, size: tuple[int, int], kinds: tuple[PictureKind, ...], device: wp.Device):
        self.size = size
        self.kinds = kinds
        width, height = size
        with wp.ScopedDevice(device), _memory_checked(size, env_num):
            # of those that are not requested: no envs
            n = {kind: env_num if kind in kinds else 0 for kind in ('rgba', 'depth', 'labels')}
            self.rgba: Any = wp.zeros((n['rgba'], height, width, 4), dtype=wp.uint8)
            self.depth: Any = wp.zeros((n['depth'], height, width), dtype=float)
            self.labels: Any = wp.zeros((n['labels'], height, width), dtype=int)
        self._mirrors: dict[PictureKind, HostMirror] = {}
        self._tensors: dict[PictureKind, Any] = {}

    def read(self, kind: PictureKind) -> NDArray[Any]:
        """Return images of a kind on the host, copied there once."""
        if kind not in self._mirrors:
            self._mirrors[kind] = HostMirror(getattr(self, kind))
        return self._mirrors[kind].read()

    def tensor(self, kind: PictureKind) -> Any:
        """Return the same memory as a torch tensor."""
        if kind not in self._tensors:
            self._tensors[kind] = wp.to_torch(getattr(self, kind), requires_grad=False)
        return self._tensors[kind]

    def invalidate(self) -> None:
        """Mark the host's copies as outdated, after the device wrote to the images."""
        for mirror in self._mirrors.values():
            mirror.invalidate()


class RayTracer:
    """Ray tracer of a camera's images in the worlds of a batch.

    Args:
        model: of the worlds; textures, meshes and the headlight are those of this one.
        worlds: number of worlds.
        camera: number of the camera in the model.
        intrinsics: how it projects.
        labels: label of each geom, -1 for none.
        buffers: where the images go.
        quality: `'full'` has shadows and smooth edges.

    Raises:
        MemoryError: it does not fit on the device.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        worlds: int,
        camera: int,
        intrinsics: Intrinsics,
        labels: NDArray[np.int32],
        buffers: FrameBuffers,
        quality: Quality,
    ):
        self._buffers = buffers
        samples = _SAMPLES[quality] if 'rgba' in buffers.kinds else _SAMPLES['fast']
        with wp.ScopedDevice(buffers.rgba.device), _memory_checked(buffers.size, worlds):
            self._context = context = mjw.create_render_context(
                model,
                worlds,
                cam_active=[camera],
                cam_res=buffers.size,
                render_rgb='rgba' in buffers.kinds,
                render_depth='depth' in buffers.kinds,
                render_seg='labels' in buffers.kinds,
                enabled_geom_groups=_SEEN,
                render_skybox=True,
                use_shadows=quality == 'full',
                shadow_light_fraction=0.0,
                samples_per_pixel=round(len(samples) ** 0.5),
            )
            rays = [_rays(intrinsics, buffers.size, (x, y)) for x, y in samples.tolist()]
            context.ray_offset.assign(np.concatenate([origins for origins, _ in rays]))
            context.ray.assign(np.concatenate([directions for _, directions in rays]))
            # the same for all scenes: less to compile, and lights may differ between worlds
            context.znear, context.zfar = NEAR, FAR
            context.light_attenuation_is_default = False
            context.has_orthographic_camera = True  # rays begin where `ray_offset` has them
            self._labels = wp.array(labels, dtype=int)
            self._envs: Any = wp.array(np.full(worlds, -1), dtype=int)

    def assign(self, envs: NDArray[np.intp]) -> None:
        """Assign the images of each world to an env `(worlds,)`, -1 for none."""
        self._envs.assign(envs.astype(np.int32))

    def render(self, model: mjw.Model, data: mjw.Data) -> None:
        """Capture the images; the poses of bodies describe the state."""
        context, buffers = self._context, self._buffers
        if context.bvh_ngeom + context.bvh_nflexgeom:  # the engine crashes if there is nothing to be seen
            mjw.camlight(model, data)
            mjw.refit_bvh(model, data, context)
            mjw.render(model, data, context)
        wp.launch(
            _write_frames,
            (len(self._envs), buffers.size[0] * buffers.size[1]),
            [self._envs, buffers.size[0], context.rgb_data, context.depth_data, context.seg_data, self._labels],
            [buffers.rgba, buffers.depth, buffers.labels],
        )


def _memory_checked(size: tuple[int, int], env_num: int) -> AbstractContextManager[None]:
    return memory_checked(
        f'pictures of {size[0]} x {size[1]} pixels of {env_num} envs',
        "a smaller resolution or env_num, or SimConfig.renderer='opengl'",
    )


def _rays(
    intrinsics: Intrinsics, size: tuple[int, int], shift: tuple[float, float]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the origins [m] and directions of rays through pixels, `(height * width, 3)` each, camera frame.

    They begin at the distance `NEAR`: what is nearer is not seen.
    """
    x, y = intrinsics.pixels(size, shift)
    across = np.stack([*np.meshgrid(x, y), np.zeros(size[::-1])], axis=-1).reshape(-1, 3)
    ahead = np.array([0.0, 0.0, -1.0])
    if intrinsics.orthographic:
        return across + NEAR * ahead, np.broadcast_to(ahead, across.shape)
    directions = across + ahead
    return NEAR * directions, directions / np.linalg.norm(directions, axis=-1, keepdims=True)


@wp.kernel
def _write_frames(
    envs: wp.array[int],
    width: int,
    colours: wp.array2d[wp.uint32],
    depths: wp.array2d[float],
    geoms: wp.array2d[wp.vec2i],
    geom_labels: wp.array[int],
    rgba: wp.array4d[wp.uint8],
    depth: wp.array3d[float],
    labels: wp.array3d[int],
):
    """Write what the engine found at each pixel of each world into the images of its env."""
    world, pixel = wp.tid()
    env = envs[world]
    if env < 0:
        return
    x = pixel % width
    y = pixel // width
    if rgba.shape[0] > 0:
        colour = colours[world, pixel]
        for channel in range(3):
            rgba[env, y, x, channel] = wp.uint8((colour >> wp.uint32(16 - 8 * channel)) & wp.uint32(255))
        rgba[env, y, x, 3] = wp.uint8(255)
    if depth.shape[0] > 0:
        value = depths[world, pixel]  # from where the ray begins
        depth[env, y, x] = wp.where(value > 0.0, value + wp.static(NEAR), wp.inf)
    if labels.shape[0] > 0:
        hit = geoms[world, pixel]
        labels[env, y, x] = wp.where(hit[1] <= 0, wp.static(BACKGROUND), wp.static(UNLABELLED))
        if hit[1] == wp.static(int(mujoco.mjtObj.mjOBJ_GEOM)):
            labels[env, y, x] = geom_labels[hit[0]]


_SharedView = tuple[Intrinsics, bytes]  # what all worlds of a launch share: the intrinsics, and the headlight


class WarpCameraView(MujocoCameraView):
    """A camera, found by its name in the model."""

    def __init__(self, world: ViewContext, name: str, device: wp.Device):
        super().__init__(world, name)
        self._device = device
        self._raytraced: dict[tuple[tuple[int, int], tuple[PictureKind, ...]], _RaytracedFrames] = {}

    @override
    def capture(self, env_ids: EnvIds, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Capture:
        """Capture the images at once. MemoryError if they do not fit on the device. Occlusion is nan, not measured."""
        traced: tuple[PictureKind, ...] = tuple(kind for kind in kinds if kind != 'occlusion')
        buffers = self._take(size, traced)
        taken: dict[PictureKind, NDArray[Any]] = {kind: buffers.read(kind)[env_ids] for kind in traced}
        if 'occlusion' in kinds:
            taken['occlusion'] = np.full((len(env_ids), 1, 1), np.nan, np.float32)
        return copying(env_ids, taken)

    @override
    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        """Return the images of all envs; MemoryError if they do not fit on the device."""
        buffers = self._take(size, kinds)
        show = buffers.tensor if self._world.arrays.on_device else buffers.read
        return {kind: show(kind) for kind in kinds}

    def _take(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> FrameBuffers:
        """Capture the images of all envs, unless they show them as they are now."""
        frames = self._raytraced.get((size, kinds))
        if frames is None:
            buffers = FrameBuffers(self._world.env_num, size, kinds, self._device)
            frames = self._raytraced[size, kinds] = _RaytracedFrames(self.name, buffers, self._world.render_quality)
        frames.take(self._world, [cast(WarpEnvBatch, env_batch) for env_batch in self.env_batches()])
        return frames.buffers


class _RaytracedFrames:
    """Images of one size and of some kinds: the tracers that take them, and when they did last."""

    def __init__(self, camera: str, buffers: FrameBuffers, quality: Quality):
        self.buffers = buffers
        self._camera = camera
        self._quality: Quality = quality
        self._version = -1  # of the world when they were taken
        self._traced: list[Any] = []  # what the tracers were made for
        self._tracers: WeakKeyDictionary[WarpBatch, dict[_SharedView, RayTracer]] = WeakKeyDictionary()

    def take(self, world: ViewContext, env_batches: Sequence[WarpEnvBatch]) -> None:
        """Capture the images, unless they show the world as it is now."""
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
