"""Recording of a run: a video of the whole grid, in real time."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from internutopia.core.render.video import Video
from internutopia.core.vec_env import Env

RATE = 24.0  # frames per second, at most


class Recording:
    """Records `env` into an `.mp4` or `.gif` file while `on_step()` is called after every step; a context manager.

    Args:
        env: what is recorded; it runs while the recording does.
        path: the file.
        resolution: width and height [pixels].

    Raises:
        ValueError: the suffix of the file is unknown.
        ImportError: the library that writes such a file is missing.
    """

    def __init__(self, env: Env, path: Path, resolution: tuple[int, int] = (640, 480)):
        simulator = env.config.simulator
        step_dt = float(simulator.physics_dt) * simulator.substeps
        self._env, self._resolution = env, resolution
        self._every = max(1, round(1.0 / (RATE * step_dt)))
        self._video = Video(path, 1.0 / (self._every * step_dt))
        self._steps = 0

    def on_step(self) -> None:
        """A step was made: record it if a frame is due. NoOpenGLError if nothing can be rendered here."""
        if self._steps % self._every == 0:
            self._video.add(self._env.render(resolution=self._resolution))
        self._steps += 1

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._video.__exit__(kind, error, trace)
