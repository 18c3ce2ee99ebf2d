"""Optics of a camera: lens, clipping, noise and randomization, between a camera of the engine and its images.

The engine renders without distortion what the lens needs. What is random depends on `Config.seed` and the episode, not
on the env or on how often images are captured.

An image with distortion is sampled from one without, which is large enough for all of its rays and at least as fine in
the middle. Points in the camera's frame are `(x to the right, y down, z ahead)`, pixels `(u, v)` are counted as in
`rendering.camera`: the centre of the first one is at (0.5, 0.5).

Sources: D. C. Brown, "Close-range camera calibration" (1971), in the form of OpenCV's `calib3d`; J. Kannala and S. S.
Brandt, "A generic camera model and calibration method" (2006), in the form of OpenCV's `fisheye`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.sensor.sensor import NormalNoise
from internutopia.engines.base import DeviceWorld, World
from internutopia.engines.views import Array, CameraView, Capture, EnvIds
from internutopia.rendering.camera import BACKGROUND, Floats, Frame, Intrinsics, PictureKind
from internutopia.util.arrays import to_host
from internutopia.util.rotations import quat_multiply, quat_rotate

Distortion = Literal['brown_conrady', 'kannala_brandt']

_WIDEST = math.radians(80.0)  # from the axis, that an image without distortion can show
_ROUNDS = 50  # of Newton's method
_EXACT = 1e-10  # of coordinates at distance 1
_STEP = 1e-6
_DARK: dict[str, Any] = {'rgba': (0, 0, 0, 255), 'depth': np.inf, 'labels': BACKGROUND, 'occlusion': np.nan}


@dataclass(frozen=True)
class Lens:
    """A projection.

    Attributes:
        size: width and height of the image [pixels].
        focal: focal lengths `(fx, fy)` [pixels].
        centre: where the axis meets the image, `(cx, cy)` [pixels].
        distortion: kind of distortion, None for none.
        coefficients: of the distortion: k1, k2, p1, p2, k3 of Brown and Conrady, k1 to k4 of Kannala and Brandt.
    """

    size: tuple[int, int]
    focal: tuple[float, float]
    centre: tuple[float, float]
    distortion: Distortion | None = None
    coefficients: tuple[float, ...] = ()

    @classmethod
    def of_fovy(cls, fovy: float, size: tuple[int, int]) -> Lens:
        """Return a lens without distortion with a vertical field of view [degrees]."""
        focal = 0.5 * size[1] / math.tan(0.5 * math.radians(fovy))
        return cls(size, (focal, focal), (0.5 * size[0], 0.5 * size[1]))

    def widened(self, factor: float) -> Lens:
        """Return the same lens with focal lengths divided by a factor."""
        return replace(self, focal=(self.focal[0] / factor, self.focal[1] / factor))

    def project(self, points: Floats) -> Floats:
        """Return pixels `(..., 2)` of points `(..., 3)` in the camera's frame, which must be ahead of it."""
        return self._distorted(points[..., :2] / points[..., 2:]) * self.focal + self.centre

    @cached_property
    def rays(self) -> Floats:
        """Points `(height, width, 2)` at distance 1, x to the right and y down, that the centres of pixels show.

        They are nan beyond 80 degrees from the axis of a fisheye. ValueError if another lens shows no such ray there.
        """
        width, height = self.size
        grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(np.float64) + 0.5
        rays = self._undistorted((grid - self.centre) / self.focal)
        shown = np.linalg.norm(self._distorted(rays) * self.focal + self.centre - grid, axis=-1) < _STEP
        if self.distortion == 'kannala_brandt' and shown.any():
            return np.where(shown[..., None], rays, np.nan)
        if not shown.all():
            v, u = np.argwhere(~shown)[0]
            raise ValueError(
                f'no ray within 80 degrees of the axis is shown at pixel ({u}, {v}) of {width} x {height}: '
                'the distortion folds over there, or the image is too wide'
            )
        return rays

    @cached_property
    def is_plain(self) -> bool:
        """True if it is what the engine renders itself: no distortion, square pixels, the axis in the middle."""
        middle = np.allclose(self.centre, np.array(self.size) / 2)
        return self.distortion is None and math.isclose(*self.focal) and bool(middle)

    @cached_property
    def intrinsics(self) -> Intrinsics:
        """Intrinsics of the lens as if it had no distortion."""
        (width, height), (fx, fy), (cx, cy) = self.size, self.focal, self.centre
        centre = (0.5 * width - cx) / fx, (cy - 0.5 * height) / fy
        return Intrinsics(0.5 * width / fx, 0.5 * height / fy, centre=centre)

    @cached_property
    def source(self) -> tuple[tuple[int, int], float]:
        """Size [pixels] and vertical field of view [degrees] of an image without distortion that shows all rays."""
        if self.is_plain:
            return self.size, math.degrees(2 * math.atan(0.5 * self.size[1] / self.focal[1]))
        spread = np.nanmax(np.abs(self.rays), axis=(0, 1)) + 1.0 / np.array(self.focal)  # a pixel more, to interpolate
        width, height = np.ceil(2 * spread * max(self.focal)).astype(int).tolist()
        half_height = max(spread[1], spread[0] * height / width)
        return (width, height), math.degrees(2 * math.atan(half_height))

    def _distorted(self, xy: Floats) -> Floats:
        """Return where points `(..., 2)` at distance 1 are in the image, in focal lengths from its centre."""
        if self.distortion is None:
            return xy
        squared = (xy**2).sum(axis=-1, keepdims=True)
        if self.distortion == 'kannala_brandt':
            radius = np.maximum(np.sqrt(squared), 1e-12)
            return xy / radius * self._bent(np.arctan(radius))
        k1, k2, p1, p2, k3 = self._padded(5)
        radial = 1 + squared * (k1 + squared * (k2 + squared * k3))
        tangential = 2 * xy[..., :1] * xy[..., 1:] * np.array([p1, p2]) + (squared + 2 * xy**2) * np.array([p2, p1])
        return xy * radial + tangential

    def _undistorted(self, target: Floats) -> Floats:
        """Return the points `(..., 2)` that are at these places in the image; nonsense where there are none."""
        if self.distortion is None:
            return target
        with np.errstate(all='ignore'):
            if self.distortion == 'kannala_brandt':
                radius = np.maximum(np.linalg.norm(target, axis=-1, keepdims=True), 1e-12)
                angle = np.minimum(radius, _WIDEST)
                for _ in range(_ROUNDS):
                    slope = (self._bent(angle + _STEP) - self._bent(angle - _STEP)) / (2 * _STEP)
                    angle = np.clip(angle - (self._bent(angle) - radius) / slope, 0.0, _WIDEST)
                return target / radius * np.tan(angle)
            found = target.copy()
            for _ in range(_ROUNDS):
                a, b, c, d = self._slopes(found)
                x, y = np.moveaxis(self._distorted(found) - target, -1, 0)
                step = np.stack([d * x - b * y, a * y - c * x], axis=-1) / (a * d - b * c)[..., None]
                found = found - step
                if np.abs(step).max() < _EXACT:
                    break
            in_range = np.linalg.norm(found, axis=-1, keepdims=True) < math.tan(_WIDEST)
            return np.where(in_range & self._is_upright(found), found, np.nan)

    def _is_upright(self, xy: Floats) -> NDArray[np.bool_]:
        """Return True for points `(..., 1)` up to which, from the axis on, the image is not turned inside out."""
        upright = np.ones(xy.shape[:-1], bool)
        for share in np.linspace(0, 1, 17)[1:]:
            a, b, c, d = self._slopes(share * xy)
            upright &= a * d - b * c > 0
        return upright[..., None]

    def _slopes(self, xy: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the derivatives of `_distorted`, row by row: of its x by x and y, and of its y by x and y."""
        steps = np.array([[_STEP, 0.0], [0.0, _STEP]])
        by_x, by_y = ((self._distorted(xy + step) - self._distorted(xy - step)) / (2 * _STEP) for step in steps)
        return by_x[..., 0], by_y[..., 0], by_x[..., 1], by_y[..., 1]

    def _bent(self, angle: Floats) -> Floats:
        """Return the distance from the centre at which a fisheye shows rays at an angle [rad] to its axis."""
        k1, k2, k3, k4 = self._padded(4)
        squared = angle**2
        return angle * (1 + squared * (k1 + squared * (k2 + squared * (k3 + squared * k4))))

    def _padded(self, count: int) -> tuple[float, ...]:
        return (*self.coefficients, *[0.0] * (count - len(self.coefficients)))


def sample(lens: Lens, source: Frame, frame: Frame, fovy: float) -> None:
    """Write the image of a lens, from an image without distortion whose vertical field of view is `fovy` [degrees].

    Colours are interpolated, depths and labels are those of the nearest pixel. What the lens does not show is black.
    """
    nearest, corners, weights = _sampling(lens, source.size, fovy)
    dark = np.isnan(lens.rays[..., 0])
    for kind, picture in frame.pictures.items():
        flat = getattr(source, kind).reshape(source.size[0] * source.size[1], -1)
        if kind == 'rgba':
            mixed = np.einsum('khw,khwc->hwc', weights, flat[corners].astype(np.float32))
            picture[:] = np.rint(mixed).astype(np.uint8)
        else:
            picture[:] = flat[nearest, 0]
        picture[dark] = _DARK[kind]


@lru_cache(256)
def _sampling(lens: Lens, size: tuple[int, int], fovy: float) -> tuple[NDArray[np.intp], NDArray[np.intp], Any]:
    """Return the nearest pixel `(h, w)` of an image without distortion for each one, four around it, their weights."""
    half_height = math.tan(0.5 * math.radians(fovy))
    half = np.array([half_height * size[0] / size[1], half_height])
    places = (np.nan_to_num(lens.rays) / half + 1.0) * 0.5 * size - 0.5  # of the centres of pixels
    places = np.clip(places, 0.0, np.array(size) - 1.0)
    low = np.minimum(places.astype(np.intp), np.maximum(np.array(size) - 2, 0))
    x, y = np.moveaxis(places - low, -1, 0)
    first = low[..., 1] * size[0] + low[..., 0]
    right, down = int(size[0] > 1), size[0] * int(size[1] > 1)
    corners = np.stack([first, first + right, first + down, first + right + down])
    weights = np.stack([(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y]).astype(np.float32)
    column, row = np.moveaxis(np.rint(places).astype(np.intp), -1, 0)
    return row * size[0] + column, corners, weights


def lens_of(config: Any, size: tuple[int, int]) -> Lens:
    """Return the lens of a config for images of a size. ValueError if it shows nothing at some pixel."""
    given = config.lens
    if given is None:
        return Lens.of_fovy(config.fovy, size)
    centre = given.centre or (0.5 * size[0], 0.5 * size[1])
    return Lens(size, given.focal, centre, given.distortion, given.coefficients)


def widest(config: Any, size: tuple[int, int]) -> Lens:
    """Return the lens of a config at its smallest focal lengths. ValueError if it shows nothing at some pixel."""
    lens = lens_of(config, size).widened(1 / (1 - config.randomization.zoom))
    try:
        _ = lens.source
    except ValueError as error:
        raise ValueError(f'camera {config.name!r}: {error}') from None
    return lens


class OpticsView(CameraView):
    """A camera seen through its optics, in every env that has it.

    `envs` returns the ids of these envs. ValueError for a randomization on a device, where episodes begin without the
    host.
    """

    def __init__(self, view: CameraView, world: World, config: Any, size: tuple[int, int], envs: Callable[[], EnvIds]):
        self._is_random = config.randomization != type(config.randomization)()
        if isinstance(world, DeviceWorld) and self._is_random:
            raise ValueError(f'camera {config.name!r}: randomization is not supported with arrays on a device')
        self.name = view.name
        self._view, self._world, self._config, self._envs = view, world, config, envs
        self._lens, self._widest = lens_of(config, size), widest(config, size)
        self._new: set[int] = set()  # envs whose episode has begun since
        self._lenses: dict[int, Lens] = {}  # by env, as sampled for its episode
        self._gains: dict[int, float] = {}
        self._color = NormalNoise(world, f'{view.name}/color', config.noise.color)
        self._depth = NormalNoise(world, f'{view.name}/depth', 1.0)
        self._dropout = NormalNoise(world, f'{view.name}/dropout', 1.0)

    def begin(self, env_ids: EnvIds) -> None:
        """Let envs sample pose, focal lengths and exposure again, as an episode begins in them."""
        if self._is_random:
            self._new.update(env_ids.tolist())

    def lens(self, env_id: int) -> Lens:
        """Return the lens in an env."""
        self._sample()
        return self._lenses.get(env_id, self._lens)

    def _sample(self) -> None:
        """Sample what is random in envs whose episode has begun."""
        ranges, new = self._config.randomization, sorted(self._new)
        self._new.clear()
        for env_id in new:
            random = np.random.default_rng([int(self._world.noise_keys[env_id]), *self.name.encode()])
            shift, axis = random.uniform(-ranges.position, ranges.position, 3), random.normal(size=3)
            angle = 0.5 * np.radians(random.uniform(0, ranges.angle))
            turn = np.array([np.cos(angle), *(np.sin(angle) * axis / np.linalg.norm(axis))])
            self._lenses[env_id] = self._lens.widened(1 / (1 + random.uniform(-ranges.zoom, ranges.zoom)))
            self._gains[env_id] = 2.0 ** random.uniform(-ranges.exposure, ranges.exposure)
            position, orientation = (to_host(values)[env_id] for values in self._view.get_poses())
            moved = position + quat_rotate(orientation, shift), quat_multiply(orientation, turn)
            self._view.set_poses(np.array([env_id]), *(values[None] for values in moved))

    @override
    def get_poses(self) -> tuple[Array, Array]:
        self._sample()
        return self._view.get_poses()

    @override
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        self._view.set_poses(env_ids, positions, orientations)

    @override
    def get_mount_poses(self) -> tuple[Array, Array]:
        return self._view.get_mount_poses()

    @override
    def intrinsics(self, env_id: int, size: tuple[int, int]) -> Intrinsics:
        """Return the projection, distortion apart."""
        return self.lens(env_id).intrinsics

    @override
    def capture(self, env_ids: EnvIds, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Capture:
        self._sample()
        source_size, fovy = self._widest.source
        capture = self._view.capture(env_ids, source_size, kinds)
        lenses = {env_id: (self.lens(env_id), self._gains.get(env_id, 1.0)) for env_id in env_ids.tolist()}
        moments = [noise.moment(env_ids) for noise in (self._color, self._depth, self._dropout)]
        rows = {env_id: row for row, env_id in enumerate(env_ids.tolist())}

        def render(env_ids: Sequence[int], frames: Sequence[Frame]) -> None:
            sources = Frame.blank(source_size, kinds, len(env_ids))
            capture(env_ids, [sources.row(row) for row in range(len(env_ids))])
            for row, (env_id, frame) in enumerate(zip(env_ids, frames, strict=True)):
                (lens, gain), source = lenses[env_id], sources.row(row)
                if lens == self._widest and lens.is_plain:
                    for kind, picture in frame.pictures.items():
                        picture[:] = source.pictures[kind]
                else:
                    sample(lens, source, frame, fovy)
                self._disturb(frame, gain, *(moment[rows[env_id]][None] for moment in moments))

        return render

    @override
    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        frames, env_ids = Frame.blank(size, kinds, self._world.env_num), self._envs()
        self.render(env_ids, [frames.row(env_id) for env_id in env_ids.tolist()])
        return {kind: self._world.arrays.asarray(picture) for kind, picture in frames.pictures.items()}

    def _disturb(self, frame: Frame, gain: float, color: Array, depth_noise: Array, dropout: Array) -> None:
        """Add exposure, noise of a moment and clipping to the images of an env."""
        noise, clipping = self._config.noise, self._config.clipping
        if frame.rgba is not None and (gain != 1.0 or noise.color):
            shown = frame.rgba[None, ..., :3].astype(np.float32) * gain
            frame.rgba[..., :3] = np.rint(np.clip(self._color.add_at(shown, color)[0], 0, 255))
        if frame.depth is None:
            return
        depth = frame.depth
        none = np.zeros((1, *depth.shape), np.float32)
        seen = np.isfinite(depth)
        if noise.depth:
            normal = self._depth.add_at(none, depth_noise)[0]
            depth[seen] += noise.depth * normal[seen] * depth[seen] ** 2
        if noise.depth_step:
            depth[seen] = np.rint(depth[seen] / noise.depth_step) * noise.depth_step
        if clipping is not None:
            depth[(depth < clipping[0]) | (depth > clipping[1])] = np.inf
        if noise.depth_dropout:
            depth[self._dropout.add_at(none, dropout)[0] < NormalDist().inv_cdf(noise.depth_dropout)] = np.inf
