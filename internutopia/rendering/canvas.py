"""Canvas: the OpenGL context and scenes with which one thread renders envs.

A context is made once per thread, and what it holds of a model (meshes, textures) once per model: the least recently
used models are dropped when there are many. `fast` images have no shadows, no reflections and no smooth edges.
`plain` ones have no textures and no sky either, but their mean colours, and round things have few faces.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.camera import (
    BACKGROUND,
    FAR,
    NEAR,
    UNLABELLED,
    CameraPose,
    Frame,
    Layer,
    Quality,
    RenderRequest,
    add_markers,
)
from internutopia.rendering.colours import coloured, plain_colours, sky_colour
from internutopia.rendering.cutaway import ceiling_height, nothing_above
from internutopia.rendering.depth import depth_value, metres_of, sky_distance
from internutopia.rendering.geom_groups import shown_geoms
from internutopia.rendering.gl import SOFTWARE_TURN, open_context, renders_in_software
from internutopia.rendering.occlusion import Crop, count_pixels, crop_around, occlusion_picture, pixel_boxes

_MODELS_KEPT: dict[Quality, int] = {'plain': 32, 'fast': 32, 'full': 4}  # one with shadows holds 64 MB
_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_STILL, _MOVING = int(mujoco.mjtCatBit.mjCAT_STATIC), int(mujoco.mjtCatBit.mjCAT_DYNAMIC)
_CATEGORIES: dict[Layer, int] = {'all': _STILL | _MOVING, 'still': _STILL, 'moving': _MOVING}
_PLAIN = (mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR)
_PLAIN_DETAIL = 12, 6, 1  # faces of round things around and along their axis, and of boxes along their edges
_FLOOR_CELLS = 40  # of an infinite plane along its edges; the engine's 200 are most of a picture's time
_FLOOR = 1000.0  # m, at least: how far an infinite plane reaches
_SHADOWS = 4.0  # m, at least: within this radius around what a camera sees, directional lights cast shadows
_STEEP = 0.25  # sine of the angle from which on a camera looks down on what it shows, however far
_DECORATION_GEOMS = 1000  # room for what is rendered besides geoms: tendons, skins, flexes
_ROUND = range(int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_BOX))  # spheres to cylinders
_SEEN, _SEEN_AS_ROUND = 1.0, 4.0  # pixels: what is smaller is not seen in a moving layer, or not to be round
_model_lock = threading.Lock()


class Canvas:
    """Renderer of one thread; all calls come from it, `free` too. Those `in_software` take turns."""

    def __init__(self, quality: Quality):
        self._quality: Quality = quality
        self._context = open_context()
        self.in_software = renders_in_software()
        self._turn = SOFTWARE_TURN if self.in_software else nullcontext()
        self._scenes: OrderedDict[int, _ModelScene] = OrderedDict()  # by id of the model, which the scene keeps alive

    def render(
        self,
        model: mujoco.MjModel,
        state: NDArray[np.float64],
        labels: NDArray[np.int32],
        requests: Sequence[RenderRequest],
    ) -> None:
        """Render one env as seen by some cameras.

        Args:
            model: of the env; it must stay as it is.
            state: of the env, `mjSTATE_INTEGRATION`.
            labels: label of each geom, -1 for none.
            requests: the images.
        """
        size = [max(request.frame.size[k] for request in requests) for k in (0, 1)]
        with self._turn:
            scene = self._scene_of(model, size)
            scene.reserve(size)
            scene.pose(state)
            for request in requests:
                scene.render(request, labels)

    def free(self) -> None:
        """Free all resources."""
        with self._turn:
            for scene in self._scenes.values():
                scene.free()
            self._scenes.clear()
            self._context.free()

    def _scene_of(self, model: mujoco.MjModel, size: Sequence[int]) -> _ModelScene:
        scene = self._scenes.get(id(model))
        if scene is None:
            scene = self._scenes[id(model)] = _ModelScene(model, size, self._quality)
            if len(self._scenes) > _MODELS_KEPT[self._quality]:
                self._scenes.popitem(last=False)[1].free()
        self._scenes.move_to_end(id(model))
        return scene


class _ModelScene:
    """Scene and OpenGL context of one model in a canvas."""

    def __init__(self, model: mujoco.MjModel, size: Sequence[int], quality: Quality):
        self._model = model
        self._smooth = quality == 'full'
        self._data = mujoco.MjData(model)
        self._scene = mujoco.MjvScene(model, 2 * model.ngeom + _DECORATION_GEOMS)
        self._options = mujoco.MjvOption()
        self._options.sitegroup[:] = 0  # places, not things
        self._options.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = 0
        self._free_camera: Any = mujoco.MjvCamera()  # the scene needs one; `_set_camera` replaces it
        if not self._smooth:
            self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._sky = sky_distance(model)
        self._background: NDArray[np.uint8] | None = None  # painted where nothing is
        self._colours: dict[str, NDArray[np.float32]] = {}  # fields of the model while a scene is made of it
        if quality == 'plain':
            for flag in (mujoco.mjtRndFlag.mjRND_SKYBOX, mujoco.mjtRndFlag.mjRND_HAZE):
                self._scene.flags[flag] = 0
            self._options.flags[mujoco.mjtVisFlag.mjVIS_TEXTURE] = 0
            self._sky, self._background, self._colours = None, sky_colour(model), plain_colours(model)
        self._flags = self._scene.flags.copy()
        self._moving = _moving_geoms(model)
        self._shown: Layer | None = None
        self._size = list(size)
        self._context = _context(model, self._size, quality)

    def reserve(self, size: Sequence[int]) -> None:
        """Make room for images of this size."""
        if size[0] > self._size[0] or size[1] > self._size[1]:
            self._size = [max(pair) for pair in zip(size, self._size, strict=True)]
            mujoco.mjr_resizeOffscreen(*self._size, self._context)

    def pose(self, state: NDArray[np.float64]) -> None:
        """Move everything to the poses of the state."""
        model, data = self._model, self._data
        mujoco.mj_setState(model, data, state, _STATE)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        if model.nflex:
            mujoco.mj_flex(model, data)
        if model.ntendon:
            mujoco.mj_tendon(model, data)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)  # models share the OpenGL context
        self._shown = None

    def render(self, request: RenderRequest, labels: NDArray[np.int32]) -> None:
        if request.layer != self._shown:
            self._shown = request.layer
            with _far_floor(self._model), coloured(self._model, self._colours):
                mujoco.mjv_updateScene(
                    *(self._model, self._data, self._options, None, self._free_camera),
                    *(_CATEGORIES[request.layer], self._scene),
                )
        count = self._scene.ngeom
        add_markers(self._scene, request.markers)
        with self._cut(request.camera_pose):
            if request.layer == 'moving':
                self._render_moving(request)
            else:
                self._render(request.camera_pose, request.frame, labels, request.layer)
        self._scene.ngeom = count

    def _render(self, camera_pose: CameraPose, frame: Frame, labels: NDArray[np.int32], layer: Layer) -> None:
        rect = mujoco.MjrRect(0, 0, *frame.size)
        in_colour = frame.rgba is not None
        # depths of shadows are as exact as a millionth of the far plane: a floor would be in its own shadow in places
        shadows = in_colour and self._smooth
        self._set_camera(camera_pose, min(FAR, max(_FLOOR, 10.0 * self._model.stat.extent)) if shadows else FAR)
        # edges are smoothed by several samples per pixel, of which depth would be one next to the pixel's centre
        depth_in_colour = in_colour and not self._smooth and frame.labels is None and layer == 'all'
        if frame.rgba is not None:
            pixels = np.empty((*frame.rgba.shape[:2], 3), np.uint8)
            with_depth = (depth_in_colour and frame.depth is not None) or self._background is not None
            depth = np.empty(frame.rgba.shape[:2], np.float32) if with_depth else None
            mujoco.mjr_render(rect, self._scene, self._context)
            mujoco.mjr_readPixels(pixels, depth, rect, self._context)
            if depth is not None and self._background is not None:
                pixels[depth <= 0.0] = self._background
            for channel in range(3):  # numpy takes four times as long for three bytes of four at a time
                frame.rgba[..., channel] = pixels[::-1, :, channel]  # OpenGL begins at the bottom
            frame.rgba[..., 3] = 255
            if depth_in_colour and depth is not None and frame.depth is not None:
                self._clear_sky(depth, rect, camera_pose)
                frame.depth[:] = metres_of(depth, camera_pose.intrinsics.orthographic)[::-1]
                return
        if layer == 'still':
            for geom in self._scene.geoms[: self._scene.ngeom]:
                if geom.rgba[3] < 1.0:
                    geom.segid = -1  # without a number it has no depth
            self._shown = None
        if frame.depth is not None or frame.labels is not None:
            if shadows:
                self._set_camera(camera_pose)
            self._render_plain(rect, camera_pose, frame, labels)

    def _render_moving(self, request: RenderRequest) -> None:
        """Render the part of the image that shows what moves."""
        frame = request.frame
        assert frame.rgba is not None and frame.depth is not None and frame.labels is None
        frame.bounds[:] = 0
        if not self._scene.ngeom:
            return
        part = Crop(request.camera_pose, frame.size)
        if len(self._moving) and not request.markers:
            boxes = pixel_boxes(self._model, self._data, self._moving, request.camera_pose, frame.size)
            part = crop_around(boxes, request.camera_pose, frame.size)
            if boxes is not None:
                self._simplify(boxes)
        self._set_camera(part.camera_pose)
        (left, top), (width, height) = part.corner, part.size
        frame.bounds[:] = top, top + height, left, left + width
        rect = mujoco.MjrRect(0, 0, width, height)
        pixels, depth = np.empty((height, width, 3), np.uint8), np.empty((height, width), np.float32)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = 0
        mujoco.mjr_render(rect, self._scene, self._context)
        mujoco.mjr_readPixels(pixels, depth, rect, self._context)
        self._scene.flags[:] = self._flags
        rgba = frame.rgba[top : top + height, left : left + width]
        rgba[..., :3], rgba[..., 3] = pixels[::-1], 255 * (depth[::-1] > 0.0)
        metres = metres_of(depth, part.camera_pose.intrinsics.orthographic)[::-1]
        frame.depth[top : top + height, left : left + width] = metres

    def _simplify(self, boxes: NDArray[np.float64]) -> None:
        """Render of what moves, given its boxes, no more than pixels can show.

        What is round and few pixels large becomes a box, which takes a seventh of the time; what is smaller than a
        pixel is left out, unless there is nothing larger.
        """
        sides = (boxes[1] - boxes[0]).max(axis=1)
        least = min(_SEEN, 0.5 * float(sides.max()))
        by_geom = dict(zip(self._moving.tolist(), sides.tolist(), strict=True))
        for geom in self._scene.geoms[: self._scene.ngeom]:
            side = by_geom.get(geom.objid, math.inf) if geom.objtype == mujoco.mjtObj.mjOBJ_GEOM else math.inf
            if side < least:
                geom.type = mujoco.mjtGeom.mjGEOM_NONE
            elif side < _SEEN_AS_ROUND and geom.type in _ROUND:
                geom.type = mujoco.mjtGeom.mjGEOM_BOX
        self._shown = None

    def free(self) -> None:
        self._context.free()

    def _clear_sky(self, depth: NDArray[np.float32], rect: mujoco.MjrRect, camera_pose: CameraPose) -> None:
        """Make what an image in colour left in the depth buffer what it would have left without a sky.

        A pixel shows the sky if nothing in it is nearer than a sky alone. Haze, the sky's lower edge over an infinite
        plane, lies before it and before the far end of the plane: only an image without both shows it.
        """
        if self._sky is None:
            return
        far = depth < depth_value(self._sky, camera_pose.intrinsics)
        if not far.any():
            return
        sky = np.empty_like(depth)
        count, self._scene.ngeom = self._scene.ngeom, 0
        mujoco.mjr_render(rect, self._scene, self._context)
        mujoco.mjr_readPixels(None, sky, rect, self._context)
        self._scene.ngeom = count
        depth[depth <= sky] = 0.0
        if (far & (depth > 0.0)).any():
            self._scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = 0
            mujoco.mjr_render(rect, self._scene, self._context)
            mujoco.mjr_readPixels(None, depth, rect, self._context)
            self._scene.flags[:] = self._flags

    def _render_plain(
        self, rect: mujoco.MjrRect, camera_pose: CameraPose, frame: Frame, labels: NDArray[np.int32]
    ) -> None:
        """Render depth and labels: every geom in one flat colour, which is its number."""
        for flag in _PLAIN:
            self._scene.flags[flag] = 1
        width, height = frame.size
        pixels = np.empty((height, width, 3), np.uint8) if frame.labels is not None else None
        depth = np.empty((height, width), np.float32) if frame.depth is not None else None
        mujoco.mjr_render(rect, self._scene, self._context)
        mujoco.mjr_readPixels(pixels, depth, rect, self._context)
        if depth is not None and frame.depth is not None:
            frame.depth[:] = metres_of(depth, camera_pose.intrinsics.orthographic)[::-1]
        if pixels is not None and frame.labels is not None:
            numbers = pixels.astype(np.int32) @ np.array([1, 1 << 8, 1 << 16], np.int32)
            frame.labels[:] = self._labels_by_number(labels)[numbers][::-1]
            if frame.occlusion is not None:
                things = np.flatnonzero(count_pixels(frame.labels)).tolist()
                alone = self._pixels_alone(things, labels, camera_pose, frame.size)
                frame.occlusion[:] = occlusion_picture(frame.labels, alone)
        self._scene.flags[:] = self._flags

    def _pixels_alone(
        self, things: Sequence[int], labels: NDArray[np.int32], camera_pose: CameraPose, size: tuple[int, int]
    ) -> dict[int, int]:
        """Count the pixels that things would cover alone: each is rendered by itself, in the part around it.

        The scene is in plain colours, in which it does without geoms that have no number.
        """
        shown = [geom for geom in self._scene.geoms[: self._scene.ngeom] if geom.segid >= 0]
        parts: dict[int, list[Any]] = {thing: [] for thing in things}
        numbers = [geom.segid for geom in shown]
        for geom in shown:
            if geom.objtype == mujoco.mjtObj.mjOBJ_GEOM and (thing := int(labels[geom.objid])) in parts:
                parts[thing].append((geom, geom.segid))
            geom.segid = -1
        counts: dict[int, int] = {}
        for thing, own in parts.items():
            geoms = [geom.objid for geom, _ in own]
            part = crop_around(pixel_boxes(self._model, self._data, geoms, camera_pose, size), camera_pose, size)
            self._set_camera(part.camera_pose)
            rect, depth = mujoco.MjrRect(0, 0, *part.size), np.empty(part.size[::-1], np.float32)
            for geom, number in own:
                geom.segid = number
            mujoco.mjr_render(rect, self._scene, self._context)
            mujoco.mjr_readPixels(None, depth, rect, self._context)
            for geom, _ in own:
                geom.segid = -1
            counts[thing] = int(np.count_nonzero(depth))
        for geom, number in zip(shown, numbers, strict=True):
            geom.segid = number
        return counts

    def _labels_by_number(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the label of each colour number: 0 is the background, others are the number of a geom plus one."""
        table = np.full(self._scene.ngeom + 1, UNLABELLED, np.int32)
        table[0] = BACKGROUND
        for geom in self._scene.geoms[: self._scene.ngeom]:
            if geom.segid >= 0 and geom.objtype == mujoco.mjtObj.mjOBJ_GEOM:
                table[geom.segid + 1] = labels[geom.objid]
        return table

    def _set_camera(self, camera_pose: CameraPose, far: float = FAR) -> None:
        """Set the camera of the scene (both eyes of it) and put the headlight there."""
        intrinsics = camera_pose.intrinsics
        unit = 1.0 if intrinsics.orthographic else NEAR
        for camera in self._scene.camera:
            camera.pos[:] = camera_pose.position
            camera.forward[:] = -camera_pose.rotation[:, 2]
            camera.up[:] = camera_pose.rotation[:, 1]
            camera.orthographic = intrinsics.orthographic
            camera.frustum_center = intrinsics.centre[0] * unit
            camera.frustum_width = intrinsics.half_width * unit
            camera.frustum_top = (intrinsics.centre[1] + intrinsics.half_height) * unit
            camera.frustum_bottom = (intrinsics.centre[1] - intrinsics.half_height) * unit
            camera.frustum_near, camera.frustum_far = NEAR, far
        mujoco.mjv_makeLights(self._model, self._data, self._scene)
        if self._smooth:
            self._centre_shadows(camera_pose)

    def _centre_shadows(self, camera_pose: CameraPose) -> None:
        """Move directional lights, which cast shadows within a radius around their axis, above what the camera sees."""
        radius, forward = self._context.shadowClip, -camera_pose.rotation[:, 2]
        drop = camera_pose.position[2] - self._model.stat.center[2]
        distance = -drop / forward[2] if forward[2] * drop < 0.0 else math.inf  # to the height of the scene's centre
        if abs(forward[2]) < _STEEP or distance == math.inf:
            distance = min(distance, radius)
        seen = camera_pose.position + distance * forward
        for light in self._scene.lights[: self._scene.nlight]:
            if light.castshadow and light.type == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL:
                offset = seen - light.pos
                light.pos += offset - (offset @ light.dir) * light.dir

    @cached_property
    def _ceiling(self) -> float | None:
        return ceiling_height(self._model, self._data)

    def _cut(self, camera_pose: CameraPose) -> AbstractContextManager[None]:
        """Render nothing above the ceiling that a camera shows rooms without."""
        if not camera_pose.cutaway or self._ceiling is None or camera_pose.position[2] < self._ceiling:
            return nullcontext()
        return nothing_above(self._ceiling, camera_pose)


def _context(model: mujoco.MjModel, size: Sequence[int], quality: Quality) -> mujoco.MjrContext:
    """Create the OpenGL context of a model; changes its rendering settings meanwhile, which physics does not read."""
    extent, detail = model.vis.global_, model.vis.quality
    floors = _floors(model) if quality == 'plain' else []
    with _far_floor(model):
        reach = 1.05 * model.vis.map.zfar * model.stat.extent  # the engine has them follow the camera in steps
        sizes = model.geom_size[floors].copy()
        kept = extent.offwidth, extent.offheight
        fine = detail.offsamples, detail.shadowsize, detail.numslices, detail.numstacks, detail.numquads
        extent.offwidth, extent.offheight = size
        if quality != 'full':
            detail.offsamples = detail.shadowsize = 0
        if quality == 'plain':
            detail.numslices, detail.numstacks, detail.numquads = _PLAIN_DETAIL
            model.geom_size[floors] = reach, reach, 2.0 * reach / _FLOOR_CELLS
        try:
            context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        finally:
            extent.offwidth, extent.offheight = kept
            detail.offsamples, detail.shadowsize, detail.numslices, detail.numstacks, detail.numquads = fine
            model.geom_size[floors] = sizes
    context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
    context.shadowClip = max(context.shadowClip, _SHADOWS)
    return context


def _floors(model: mujoco.MjModel) -> NDArray[np.intp]:
    """Return the infinite planes; none if a lamp lights them, as light is computed at the corners of cells."""
    if (model.light_type != mujoco.mjtLightType.mjLIGHT_DIRECTIONAL).any():
        return np.zeros(0, np.intp)
    planes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
    return planes[(model.geom_size[planes, :2] <= 0.0).all(axis=1)]


@contextmanager
def _far_floor(model: mujoco.MjModel) -> Iterator[None]:
    """Let an infinite plane reach far enough, however small the objects on it; holds the lock of the model."""
    sight = model.vis.map
    with _model_lock:
        kept = sight.zfar
        sight.zfar = max(kept, _FLOOR / model.stat.extent)
        try:
            yield
        finally:
            sight.zfar = kept


def _moving_geoms(model: mujoco.MjModel) -> NDArray[np.intp]:
    """Return the geoms that are not fixed to the world; none if other things move that have no geoms."""
    if model.nflex or model.ntendon or model.nskin:
        return np.zeros(0, np.intp)
    return np.flatnonzero((model.body_weldid[model.geom_bodyid] != 0) & shown_geoms(model))
