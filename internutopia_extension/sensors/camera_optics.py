"""Optics of a camera: lens, clipping, noise and randomization, between a camera of the engine and its pictures.

The engine renders without distortion what the lens needs. What is random depends on `Config.seed` and the episode, not
on the env or on how often pictures are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.core.sensor.noise import NormalNoise
from internutopia.engines.base import DeviceWorld, World
from internutopia.engines.views import Array, CameraView, EnvIds
from internutopia.rendering.camera import Frame, Intrinsics, PictureKind
from internutopia.rendering.lens import Lens, sample
from internutopia.util.arrays import to_host
from internutopia.util.rotations import quat_multiply, quat_rotate


def lens_of(config: Any, size: tuple[int, int]) -> Lens:
    """Return the lens of a config for pictures of a size. ValueError if it shows nothing at some pixel."""
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
            raise ValueError(f'camera {config.name!r}: randomization is not there with arrays on a device')
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
        """Let envs sample pose, focal lengths and exposure anew, as an episode begins in them."""
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
    def render(self, env_ids: EnvIds, frames: Sequence[Frame]) -> None:
        if not len(env_ids):
            return
        self._sample()
        size, fovy = self._widest.source
        sources = Frame.blank(size, tuple(frames[0].pictures), len(env_ids))
        self._view.render(env_ids, [sources.row(row) for row in range(len(env_ids))])
        for row, (env_id, frame) in enumerate(zip(env_ids.tolist(), frames, strict=True)):
            lens, source = self.lens(env_id), sources.row(row)
            if lens == self._widest and lens.is_plain:
                for kind, picture in frame.pictures.items():
                    picture[:] = source.pictures[kind]
            else:
                sample(lens, source, frame, fovy)
            self._disturb(env_id, frame)

    @override
    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        frames, env_ids = Frame.blank(size, kinds, self._world.env_num), self._envs()
        self.render(env_ids, [frames.row(env_id) for env_id in env_ids.tolist()])
        return {kind: self._world.arrays.asarray(picture) for kind, picture in frames.pictures.items()}

    def _disturb(self, env_id: int, frame: Frame) -> None:
        """Add exposure, noise and clipping to the pictures of an env."""
        noise, clipping, env_ids = self._config.noise, self._config.clipping, np.array([env_id])
        if frame.rgba is not None and (env_id in self._gains or noise.color):
            shown = frame.rgba[None, ..., :3].astype(np.float32) * self._gains.get(env_id, 1.0)
            frame.rgba[..., :3] = np.rint(np.clip(self._color.add_to(shown, env_ids)[0], 0, 255))
        if frame.depth is None:
            return
        depth = frame.depth
        none = np.zeros((1, *depth.shape), np.float32)
        seen = np.isfinite(depth)
        if noise.depth:
            normal = self._depth.add_to(none, env_ids)[0]
            depth[seen] += noise.depth * normal[seen] * depth[seen] ** 2
        if noise.depth_step:
            depth[seen] = np.rint(depth[seen] / noise.depth_step) * noise.depth_step
        if clipping is not None:
            depth[(depth < clipping[0]) | (depth > clipping[1])] = np.inf
        if noise.depth_dropout:
            depth[self._dropout.add_to(none, env_ids)[0] < NormalDist().inv_cdf(noise.depth_dropout)] = np.inf
