"""Env pictures: a picture of each env on its own, for `render` of Gymnasium envs.

| mode | `render` gives |
|---|---|
| `'rgb_array'` | the current picture of the env, `(height, width, 3)` uint8 |
| `'rgb_array_list'` | the same after the last full reset and every step since, or since the last `render` |
| `'depth_array'` | distance along the viewing direction `(height, width)` float32 [m], infinite where nothing is |
| `'human'` | nothing: the envs are live in a browser, from the first reset on |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.env_cameras import EnvCameras, RobotCamera
from internutopia.core.runner.framing import Camera
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.sensor.camera import checked_resolution
from internutopia.rendering.camera import Frame, Marker, Quality, RenderRequest
from internutopia.util import did_you_mean
from internutopia.util.imports import load_entry_point

RENDER_MODES = ('human', 'rgb_array', 'rgb_array_list', 'depth_array')
PICTURE_SIZE = 640, 480  # pixels


@dataclass(frozen=True)
class EnvMarkers:
    """Markers to draw in pictures of an env, and points `(3,)` [m] that should be in view."""

    markers: Sequence[Marker] = ()
    goals: Sequence[NDArray[np.float64]] = ()


MarkerMaker = Callable[[int, RobotCamera], EnvMarkers]
"""Function that makes the markers of an env, from the camera that follows the env's robot."""


def checked_render_mode(mode: str | None) -> str | None:
    """Return the mode. ValueError if it is unknown."""
    if mode is not None and mode not in RENDER_MODES:
        hint = did_you_mean(mode, RENDER_MODES)
        raise ValueError(f'render_mode={mode!r}: expected None or {", ".join(map(repr, RENDER_MODES))}; {hint}')
    return mode


class EnvPictures:
    """Renderer of pictures of the envs of a runner.

    Args:
        env: the user's env, for a viewer.
        runner: runner of its envs.
        mode: see the module; None for no pictures.
        camera: see `env_cameras`.
        size: width and height [pixels]. ValueError if they are not positive.
        robot: name of the robot that is followed and has the markers; None for the first.
        markers: makes the markers.
        quality: None for that of the world.
    """

    def __init__(
        self,
        env: Any,
        runner: SimulatorRunner,
        mode: str | None,
        camera: Camera,
        size: tuple[int, int],
        robot: str | None = None,
        markers: MarkerMaker | None = None,
        quality: Quality | None = None,
    ):
        self.mode = checked_render_mode(mode)
        self._env, self._runner, self._size = env, runner, checked_resolution(size)
        self._cameras = EnvCameras(runner, camera, self._size, robot)
        self._markers = markers
        self._quality: Quality | None = quality
        self._kept: list[list[Any]] = [[] for _ in range(runner.env_num)]
        self._viewer: Any = None

    def on_reset(self, everywhere: bool) -> None:
        """Record pictures after a reset of all envs or some."""
        if self.mode == 'human' and self._viewer is None:
            self._viewer = load_entry_point('internutopia.viewers', 'browser')(self._env, speed=1.0)
            print(f'viewer: open {self._viewer.url}', flush=True)
        if everywhere:
            self._kept = [[] for _ in self._kept]
        self.on_step()

    def on_step(self) -> None:
        """Record pictures after a step."""
        if self.mode == 'rgb_array_list':
            for kept, picture in zip(self._kept, self._take(), strict=True):
                kept.append(picture)

    def render(self) -> list[Any]:
        """Return pictures according to the mode, one entry per env; black or infinitely far away without an episode."""
        if self.mode == 'rgb_array_list':
            kept, self._kept = self._kept, [[] for _ in self._kept]
            return kept
        return self._take() if self.mode in ('rgb_array', 'depth_array') else [None] * self._runner.env_num

    def close(self) -> None:
        """Close the page, if there is one."""
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None

    def _take(self) -> list[Any]:
        runner, deep = self._runner, self.mode == 'depth_array'
        with runner.scenes.entered():
            requests = {env_id: self._request(env_id, deep) for env_id in sorted(runner.scenes.loaded)}
            if requests:
                runner.world.render(list(requests.values()), self._quality)
        width, height = self._size
        nothing = np.full((height, width), np.inf, np.float32) if deep else np.zeros((height, width, 3), np.uint8)
        pictures: list[Any] = [nothing.copy() for _ in range(runner.env_num)]
        for env_id, request in requests.items():
            frame = request.frame
            pictures[env_id] = frame.depth if frame.rgba is None else np.ascontiguousarray(frame.rgba[..., :3])
        return pictures

    def _request(self, env_id: int, deep: bool) -> RenderRequest:
        follower = self._cameras.follower(env_id) if self._markers is not None else None
        shown = EnvMarkers() if follower is None or self._markers is None else self._markers(env_id, follower)
        pose = self._cameras.pose(env_id, shown.goals)
        frame = Frame.blank(self._size, ('depth',) if deep else ('rgba',))
        return RenderRequest(env_id, pose, frame, () if deep else shown.markers)
