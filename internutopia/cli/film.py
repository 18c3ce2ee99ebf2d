"""Film: a video of the whole grid or of one env, in real time."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.core.runner.env_cameras import TOP, EnvCameras
from internutopia.core.runner.grid_film import GridFilm
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.vec_env import Env
from internutopia.rendering.camera import Frame, RenderRequest
from internutopia.rendering.video import Image, Video

_RATE = 15.0  # frames per second, at most
_SIZE = 640, 480  # pixels


class Film:
    """Recorder of `env` into an `.mp4` or `.gif` file, by calls of `on_step()` after every step; a context manager.

    Args:
        env: env to record; it is open as long as the film.
        path: the file.
        size: width and height [pixels]; None: 640 x 480.
        camera: None views all that is recorded from above a corner, `'top'` views it straight from above;
            others, of one env, are those of `internutopia.core.runner.env_cameras`.
        env_id: the env that is recorded alone; None for all envs, or the first for a camera of one env.
        fps: frames per second, at most: a frame is taken after a step; None: 15.
        step_dt: duration of a step in the video [s]; None: its simulated duration, real time.

    Raises:
        ValueError: the suffix of the file is unknown, there is no such env, or the envs of a distributed run shall be
            seen by a camera of one of them.
        ImportError: the library that writes such a file is missing.
    """

    def __init__(
        self,
        env: Env,
        path: Path,
        size: tuple[int, int] | None = None,
        camera: str | None = None,
        env_id: int | None = None,
        fps: float | None = None,
        step_dt: float | None = None,
    ):
        if env_id is not None and not 0 <= env_id < env.num_envs:
            raise ValueError(f'env {env_id} cannot be recorded: there are the envs 0..{env.num_envs - 1}')
        self._take = _pictures(env, size or _SIZE, camera, env_id)
        if step_dt is None:
            simulator = env.config.simulator
            step_dt = float(simulator.physics_dt) * simulator.substeps
        self._every = max(1, math.ceil(1.0 / ((fps or _RATE) * step_dt) - 1e-6))
        self._video = Video(path, 1.0 / (self._every * step_dt))
        self._steps = 0

    def on_step(self) -> None:
        """Record a step if a frame is due.

        ValueError or KeyError for a camera or robot that is not there, NoOpenGLError if nothing can be rendered here.
        """
        if self._steps % self._every == 0:
            self._video.add(self._take())
        self._steps += 1

    def __enter__(self) -> Film:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._video.__exit__(*raised)


def _pictures(env: Env, size: tuple[int, int], camera: str | None, env_id: int | None) -> Callable[[], Image]:
    """Return a function that takes a picture."""
    of_all = env_id is None and camera in (None, TOP)
    if env.is_remote:
        if not of_all:
            raise ValueError(
                f'camera {camera!r} of env {env_id or 0}: the envs of a distributed run are in other processes; '
                "record all of them, with camera 'top' or None"
            )
        return lambda: env.render(camera, size)
    runner = env.runner
    if of_all and env.config.simulator.render_quality == 'fast':
        return GridFilm(runner, runner.camera_pose(camera, size), size).picture
    if of_all:  # shadows and smooth edges: what moves cannot be rendered alone
        return lambda: env.render(camera, size)
    chosen = env_id or 0
    cameras = EnvCameras(runner, camera, size)
    return lambda: _picture_of(runner, cameras, chosen, size)


def _picture_of(runner: SimulatorRunner, cameras: EnvCameras, env_id: int, size: tuple[int, int]) -> Image:
    """Render one env by itself; black without an episode."""
    frame = Frame.blank(size, ('rgba',))
    assert frame.rgba is not None
    if runner.envs[env_id] is not None:
        with runner.scenes.entered():
            runner.world.render([RenderRequest(env_id, cameras.pose(env_id), frame)])
    return np.ascontiguousarray(frame.rgba[..., :3])
