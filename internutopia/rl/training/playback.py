"""Watching a policy: what a camera beside the robots sees, as a picture over time or as a video.

Every env has a tile with a camera of its own, which stands to the right of the robot when an episode starts and follows
it. Pictures are rendered by MuJoCo, off screen.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.core.config import Config
from internutopia.core.config.learning import LearningCfg
from internutopia.core.util import did_you_mean
from internutopia.core.util.rotations import yaw_of
from internutopia.rl.training.evaluation import velocity_command, walking_test
from internutopia.rl.training.loading import ActFn, started, step_length
from internutopia.rl.vector_env import VectorEnv

Image = NDArray[np.uint8]
SUFFIXES = ('.png', '.gif', '.mp4')
VIDEO_RATE = 24.0  # frames per second, at most
STRIP_FRAMES = 8
_ELEVATION = -12.0  # degrees
_NEAREST, _FARTHEST = 1.2, 4.5  # m, of the camera
_TILE = {'.png': (300, 240), '.gif': (320, 240), '.mp4': (640, 480)}  # width, height [pixels]


def play(
    policy: ActFn,
    config: Config,
    out: Path,
    *,
    seconds: float = 10.0,
    command: tuple[float, float, float] | None = None,
    on_frame: Callable[[int, int], None] = lambda frame, frames: None,
) -> None:
    """Run a policy and write what it looks like. Episodes that end are followed by the next one.

    A PNG file shows every env in a row of pictures over time, a GIF or MP4 file is a video in real time.

    Args:
        policy: observations `(n, dim)` to actions `(n, k)`.
        config: envs of a learning task; it stays as it is. Those with a velocity command run under test conditions
            (`evaluation.walking_test`).
        out: the file.
        seconds: duration [s].
        command: forward, lateral [m/s] and yaw rate [rad/s]; None means random ones.
        on_frame: called after each frame with its number and their number.

    Raises:
        ValueError: the suffix is unknown, the task takes no velocity command, the policy does not fit, or nothing
            can be rendered here.
        ImportError: the library that writes such a file is missing.
        OSError: the file cannot be written.
    """
    if out.suffix not in SUFFIXES:
        raise ValueError(f'{out}: suffix {out.suffix!r} is not one of those that can be written; '
                         f'{did_you_mean(out.suffix, SUFFIXES)}')  # fmt: skip
    write = {'.png': _write_strip, '.gif': _write_gif, '.mp4': _write_mp4}[out.suffix]
    learning = _played(config, command)
    step_dt = step_length(config)
    steps = max(round(seconds / step_dt), 1)
    if out.suffix == '.png':
        every = max(steps / (STRIP_FRAMES - 1), 1.0)
    else:
        every = max(1.0 / VIDEO_RATE / step_dt, 1.0)
    shown = sorted({round(i * every) for i in range(math.floor(steps / every + 1e-9) + 1)})

    def frames() -> Iterator[tuple[float, list[Image]]]:
        for number, (step, tiles) in enumerate(_tiles(policy, config, learning, shown, _TILE[out.suffix]), start=1):
            yield step * step_dt, tiles
            on_frame(number, len(shown))

    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f'{out.stem}.part{out.suffix}')
    try:
        write(draft, frames(), 1.0 / (every * step_dt))
        os.replace(draft, out)
    finally:
        draft.unlink(missing_ok=True)


def _played(config: Config, command: tuple[float, float, float] | None) -> LearningCfg:
    learning = config.task_configs[0].learning
    if learning is None:
        raise ValueError('task_configs[0].learning is missing: it says what the policy sees and does')
    if velocity_command(learning) is not None:
        return walking_test(learning, command)
    if command is not None:
        raise ValueError('this task takes no velocity command: leave --command out')
    return learning


def _tiles(
    policy: ActFn, config: Config, learning: LearningCfg, shown: list[int], size: tuple[int, int]
) -> Iterator[tuple[int, list[Image]]]:
    """Run; gives the numbers of the steps that are shown and what the cameras see then."""
    envs = VectorEnv(config, learning, autoreset_mode='SameStep')
    try:
        obs = started(policy, envs)
        with ExitStack() as stack:
            cameras = [stack.enter_context(closing(_Camera(envs, i, size))) for i in range(envs.num_envs)]
            for step in range(shown[-1] + 1):
                if step:
                    obs, *_ = envs.step(policy(obs))
                if step in shown:
                    yield step, [camera.look() for camera in cameras]
    finally:
        envs.close()


class _Camera:
    """Follows the robot of an env."""

    def __init__(self, envs: VectorEnv, env_id: int, size: tuple[int, int]):
        self._core, self._env_id, self._size = envs.core, env_id, size
        self._world: Any = envs.core.runner.world  # pictures need more than its contract: the engine's own objects
        self._camera = mujoco.MjvCamera()
        self._camera.elevation = _ELEVATION
        self._renderer: mujoco.Renderer | None = None
        self._episode = -1

    def look(self) -> Image:
        """What it sees now `(height, width, 3)`."""
        if self._episode != self._core.episode_ids[self._env_id]:
            self._start()
        assert self._renderer is not None
        x, y, _ = self._core.state.base_position[self._env_id]
        self._camera.lookat = [x, y, self._height]  # a fixed height: who falls, falls in the picture
        self._renderer.update_scene(self._world.data(self._env_id), self._camera)
        return self._renderer.render()

    def close(self) -> None:
        """Free what the engine needs for pictures."""
        if self._renderer is not None:
            self._renderer.close()

    def _start(self) -> None:
        """An episode has begun, perhaps in another scene: stand beside its robot."""
        self.close()
        self._episode = int(self._core.episode_ids[self._env_id])
        model: mujoco.MjModel = self._world.model(self._env_id)
        model.vis.global_.offwidth, model.vis.global_.offheight = self._size
        try:
            self._renderer = mujoco.Renderer(model, self._size[1], self._size[0])
        except Exception as error:  # what OpenGL lacks is said in many ways
            raise ValueError(
                f'pictures cannot be rendered here ({type(error).__name__}: {error}). They need OpenGL without a '
                'display: set the environment variable MUJOCO_GL=egl (a GPU, or Mesa: apt install libegl1), or '
                'MUJOCO_GL=osmesa (apt install libosmesa6)'
            ) from error
        state = self._core.state
        base = state.base_position[self._env_id]
        self._height = 0.8 * float(base[2])
        self._camera.azimuth = 90.0 + np.degrees(float(yaw_of(state.base_orientation[self._env_id])))
        self._camera.distance = np.clip(2.5 * _reach(model, self._world.data(self._env_id), base), _NEAREST, _FARTHEST)


def _reach(model: mujoco.MjModel, data: mujoco.MjData, base: NDArray[np.float32]) -> float:
    """Distance from the base to the farthest point of what moves [m]."""
    moving = np.flatnonzero(model.body_weldid[model.geom_bodyid] != 0)
    if not len(moving):
        return 0.0
    return float((np.linalg.norm(data.geom_xpos[moving] - base, axis=-1) + model.geom_rbound[moving]).max())


def _write_strip(path: Path, frames: Iterator[tuple[float, list[Image]]], rate: float) -> None:
    """A row of pictures for each env."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"a picture needs matplotlib ({error}): pip install 'internutopia[cli]'") from error
    times, columns = zip(*frames, strict=True)
    height, width, _ = columns[0][0].shape
    rows = len(columns[0])
    figure = Figure(figsize=(len(columns) * width / 100, rows * height / 100 + 0.3), dpi=100, layout='constrained')
    figure.get_layout_engine().set(w_pad=0.01, h_pad=0.01, wspace=0.0, hspace=0.0)  # pyright: ignore
    axes = figure.subplots(rows, len(columns), squeeze=False)
    for column, tiles in enumerate(columns):
        axes[0, column].set_title(f'{times[column]:.2f} s', fontsize=9)
        for row, tile in enumerate(tiles):
            axes[row, column].imshow(tile)
            axes[row, column].set_axis_off()
    figure.savefig(path, format='png')


def _write_gif(path: Path, frames: Iterator[tuple[float, list[Image]]], rate: float) -> None:
    try:
        from PIL import Image as Pictures
    except ImportError as error:
        raise ImportError(f"a GIF needs pillow ({error}): pip install 'internutopia[cli]'") from error
    images = [Pictures.fromarray(_mosaic(tiles)) for _, tiles in frames]
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / rate), loop=0)


def _write_mp4(path: Path, frames: Iterator[tuple[float, list[Image]]], rate: float) -> None:
    try:
        import imageio_ffmpeg  # pyright: ignore[reportMissingImports] - an extra
    except ImportError as error:
        raise ImportError(
            f"an MP4 video needs imageio-ffmpeg ({error}): pip install 'internutopia[video]', or let --out end in .gif"
        ) from error
    writer = None
    try:
        for _, tiles in frames:
            image = _mosaic(tiles)
            if writer is None:
                writer = imageio_ffmpeg.write_frames(os.fspath(path), image.shape[1::-1], fps=rate)
                writer.send(None)
            writer.send(np.ascontiguousarray(image))
    finally:
        if writer is not None:
            writer.close()


def _mosaic(tiles: list[Image]) -> Image:
    """Tiles side by side in a near-square grid; cells without one are black."""
    columns = math.isqrt(len(tiles) - 1) + 1
    empty = [np.zeros_like(tiles[0])] * (-len(tiles) % columns)
    grid = [*tiles, *empty]
    return np.vstack([np.hstack(grid[i : i + columns]) for i in range(0, len(grid), columns)])
