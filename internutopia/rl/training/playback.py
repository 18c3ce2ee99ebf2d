"""Pictures and videos of a policy: what a camera beside the robots sees, as a picture over time or as a video.

Every env has a tile with a camera of its own, which stands to the right of the robot when an episode starts and follows
it. Pictures are rendered by MuJoCo, off screen.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.core.config import Config
from internutopia.core.config.learning import LearningCfg
from internutopia.core.render import video
from internutopia.core.render.camera import CameraPose, Frame, Intrinsics, RenderRequest, half_angle
from internutopia.core.render.video import Video
from internutopia.core.util import did_you_mean
from internutopia.core.util.arrays import to_host
from internutopia.core.util.install import install_hint
from internutopia.core.util.rotations import yaw_of
from internutopia.rl.training.evaluation import velocity_command, walking_test
from internutopia.rl.training.loading import ActFn, Arrays, started, step_length
from internutopia.rl.vector_env import VectorEnv

Image = NDArray[np.uint8]
SUFFIXES = ('.png', *video.SUFFIXES)
VIDEO_RATE = 24.0  # frames per second, at most
STRIP_FRAMES = 8
_ELEVATION = math.radians(12.0)  # of the camera above what it looks at
_FOVY = 45.0  # degrees
_NEAREST, _FARTHEST = 1.2, 4.5  # m, of the camera
_TILE = {'.png': (300, 240), '.gif': (320, 240), '.mp4': (640, 480)}  # width, height [pixels]


def play(
    policy: ActFn,
    config: Config,
    out: Path,
    *,
    seconds: float = 10.0,
    command: tuple[float, float, float] | None = None,
    arrays: Arrays = 'numpy',
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
        arrays: what the policy takes and gives: arrays of numpy, or torch tensors, on the device of the engine if that
            gives them.
        on_frame: called after each frame with its number and their number.

    Raises:
        ValueError: the suffix is unknown, the task takes no velocity command, or the policy does not fit.
        NoOpenGLError: nothing can be rendered here.
        ImportError: the library that writes such a file is missing.
        OSError: the file cannot be written.
    """
    if out.suffix not in SUFFIXES:
        raise ValueError(f'{out}: suffix {out.suffix!r} is not one of those that can be written; '
                         f'{did_you_mean(out.suffix, SUFFIXES)}')  # fmt: skip
    write = _write_strip if out.suffix == '.png' else _write_video
    learning = _played(config, command)
    step_dt = step_length(config)
    steps = max(round(seconds / step_dt), 1)
    if out.suffix == '.png':
        every = max(steps / (STRIP_FRAMES - 1), 1.0)
    else:
        every = max(1.0 / VIDEO_RATE / step_dt, 1.0)
    shown = sorted({round(i * every) for i in range(math.floor(steps / every + 1e-9) + 1)})

    run = _tiles(policy, config, learning, shown, _TILE[out.suffix], arrays)

    def frames() -> Iterator[tuple[float, list[Image]]]:
        for number, (step, tiles) in enumerate(run, start=1):
            yield step * step_dt, tiles
            on_frame(number, len(shown))

    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f'{out.stem}.part{out.suffix}')
    try:
        write(draft, frames(), 1.0 / (every * step_dt))
        os.replace(draft, out)
    finally:
        draft.unlink(missing_ok=True)


def run(
    policy: ActFn,
    config: Config,
    shown: Callable[[VectorEnv], AbstractContextManager[Any]],
    *,
    seconds: float | None = None,
    command: tuple[float, float, float] | None = None,
    arrays: Arrays = 'numpy',
) -> None:
    """Run a policy while something shows it, such as a viewer: `shown` is entered with the envs, before their reset.

    The other arguments, and what is raised, are those of `play`; without `seconds` it goes on until an exception.
    """
    learning = _played(config, command)
    steps = itertools.count() if seconds is None else range(max(round(seconds / step_length(config)), 1))
    with closing(VectorEnv(config, learning, autoreset_mode='SameStep', arrays=arrays)) as envs, shown(envs):
        obs = started(policy, envs)
        for _ in steps:
            obs, *_ = envs.step(policy(obs))


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
    policy: ActFn, config: Config, learning: LearningCfg, shown: list[int], size: tuple[int, int], arrays: Arrays
) -> Iterator[tuple[int, list[Image]]]:
    """Run; gives the numbers of the steps that are shown and what the cameras see then."""
    envs = VectorEnv(config, learning, autoreset_mode='SameStep', arrays=arrays)
    try:
        obs = started(policy, envs)
        cameras = [_Camera(envs, i, size) for i in range(envs.num_envs)]
        for step in range(shown[-1] + 1):
            if step:
                obs, *_ = envs.step(policy(obs))
            if step in shown:
                envs.core.runner.world.render([camera.request() for camera in cameras], quality='full')
                yield step, [camera.image() for camera in cameras]
    finally:
        envs.close()


class _Camera:
    """Follows the robot of an env."""

    def __init__(self, envs: VectorEnv, env_id: int, size: tuple[int, int]):
        self._core, self._env_id = envs.core, env_id
        self._world: Any = envs.core.runner.world  # pictures need more than its contract: the engine's own objects
        self._intrinsics = Intrinsics.of_height(half_angle(_FOVY), size)
        self._frame = Frame(np.zeros((size[1], size[0], 4), np.uint8))
        self._episode = -1

    def request(self) -> RenderRequest:
        """The picture to take of it now."""
        if self._episode != self._core.episode_ids[self._env_id]:
            self._reset()
        x, y, _ = to_host(self._core.state.base_position[self._env_id])
        target = np.array([x, y, self._height])  # a fixed height: who falls, falls in the picture
        pose = CameraPose.looking_at(target, target + self._arm, self._intrinsics)
        return RenderRequest(self._env_id, pose, self._frame)

    def image(self) -> Image:
        """What it saw last `(height, width, 3)`."""
        assert self._frame.rgba is not None
        return self._frame.rgba[..., :3].copy()

    def _reset(self) -> None:
        """An episode was started, perhaps in another scene: stand beside its robot."""
        self._episode = int(self._core.episode_ids[self._env_id])
        state = self._core.state
        base = to_host(state.base_position[self._env_id])
        self._height = 0.8 * float(base[2])
        model: mujoco.MjModel = self._world.model(self._env_id)
        distance = np.clip(2.5 * reach(model, self._world.data(self._env_id), base), _NEAREST, _FARTHEST)
        side = float(yaw_of(to_host(state.base_orientation[self._env_id]))) - 0.5 * math.pi  # to the right of the robot
        level = math.cos(_ELEVATION)
        self._arm = distance * np.array([level * math.cos(side), level * math.sin(side), math.sin(_ELEVATION)])


def reach(model: mujoco.MjModel, data: mujoco.MjData, base: NDArray[np.float32]) -> float:
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
        raise ImportError(f'a picture needs matplotlib ({error}): {install_hint("cli")}') from error
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


def _write_video(path: Path, frames: Iterator[tuple[float, list[Image]]], rate: float) -> None:
    with Video(path, rate) as video:
        for _, tiles in frames:
            video.add(_mosaic(tiles))


def _mosaic(tiles: list[Image]) -> Image:
    """Tiles side by side in a near-square grid; cells without one are black."""
    columns = math.isqrt(len(tiles) - 1) + 1
    empty = [np.zeros_like(tiles[0])] * (-len(tiles) % columns)
    grid = [*tiles, *empty]
    return np.vstack([np.hstack(grid[i : i + columns]) for i in range(0, len(grid), columns)])
