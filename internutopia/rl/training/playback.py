"""Images and videos of a policy, by a camera that follows each robot: a strip of images over time, or a video.

Every env has a tile with the camera that follows its robot. Images are rendered by MuJoCo, off screen.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.core.runner.env_cameras import Camera
from internutopia.core.runner.env_pictures import EnvPictures
from internutopia.rendering import video
from internutopia.rendering.video import Video
from internutopia.rl.command_markers import command_markers
from internutopia.rl.training.evaluation import tested_learning
from internutopia.rl.training.loading import ActFn, Arrays, started, step_length
from internutopia.rl.vector_env import VectorEnv
from internutopia.util import did_you_mean
from internutopia.util.imports import install_hint

Image = NDArray[np.uint8]
SUFFIXES = ('.png', *video.SUFFIXES)
VIDEO_RATE = 24.0  # frames per second, at most
STRIP_FRAMES = 8
SHEET_FRAMES = 10
_TILE = {'.png': (300, 240), '.gif': (320, 240), '.mp4': (640, 480)}  # width, height [pixels]


def play(
    policy: ActFn,
    config: Config,
    out: Path,
    *,
    seconds: float = 10.0,
    command: tuple[float, float, float] | None = None,
    size: tuple[int, int] | None = None,
    camera: Camera = None,
    arrays: Arrays = 'numpy',
    on_frame: Callable[[int, int], None] = lambda frame, frames: None,
) -> None:
    """Run a policy and write an image or video of it. Episodes that end are followed by the next one.

    A PNG file shows every env in a row of images over time, a GIF or MP4 file is a video in real time.

    Args:
        policy: observations `(n, dim)` to actions `(n, k)`.
        config: envs of a learning task; it stays as it is. Those with a velocity command run under test conditions
            (`evaluation.walking_test`).
        out: the file.
        seconds: duration [s].
        command: forward, lateral [m/s] and yaw rate [rad/s]; None means random ones.
        size: width and height of an env [pixels]; None means as fits the kind of file.
        camera: camera of the images, see `internutopia.core.runner.env_cameras`; None follows the robot that learns.
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
    learning, _ = tested_learning(config, command)
    step_dt = step_length(config)
    steps = max(round(seconds / step_dt), 1)
    if out.suffix == '.png':
        every = max(steps / (STRIP_FRAMES - 1), 1.0)
    else:
        every = max(1.0 / VIDEO_RATE / step_dt, 1.0)
    shown = sorted({round(i * every) for i in range(math.floor(steps / every + 1e-9) + 1)})

    run = _tiles(policy, config, learning, shown, size or _TILE[out.suffix], arrays, camera)

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


def contact_sheet(policy: ActFn, config: Config, out: Path, *, arrays: Arrays = 'numpy') -> None:
    """Write a PNG file with three rows of ten frames: the first robot stands, and walks, from its side and its front.

    It stands for 20 s, and the frames of the walk, at 1 m/s or the highest speed that was trained, are 0.1 s apart,
    from 3 s on. Arguments, and what is raised, are those of `play`; the task takes a velocity command.
    """
    learning, name = tested_learning(config, None)
    if name is None:
        raise ValueError('this task has no velocity command, so there is no gait to show')
    speed = min(1.0, learning.commands[name].params['forward'][1])
    step_dt = step_length(config)
    rows: list[list[tuple[str, Image]]] = []
    stand, walk = np.linspace(0.0, 20.0, SHEET_FRAMES), 3.0 + 0.1 * np.arange(SHEET_FRAMES)
    for forward, times, camera in ((0.0, stand, 'side'), (speed, walk, 'side'), (speed, walk, 'front')):
        steps = np.round(times / step_dt).astype(int).tolist()
        tasks = [task.model_copy(update={'max_episode_steps': steps[-1] + 1}) for task in config.task_configs]
        lasting = config.model_copy(update={'task_configs': tasks})  # no other episode begins meanwhile
        tested, _ = tested_learning(lasting, (forward, 0.0, 0.0))
        run = _tiles(policy, lasting, tested, steps, _TILE['.png'], arrays, camera)
        rows.append([(f'{forward:g} m/s, {step * step_dt:.1f} s', tiles[0]) for step, tiles in run])
    out.parent.mkdir(parents=True, exist_ok=True)
    _draw(out, rows)


def run(
    policy: ActFn,
    config: Config,
    shown: Callable[[VectorEnv], AbstractContextManager[Any]],
    *,
    seconds: float | None = None,
    command: tuple[float, float, float] | None = None,
    arrays: Arrays = 'numpy',
) -> None:
    """Run a policy in a display such as a viewer: `shown` is entered with the envs, before their reset.

    The other arguments, and what is raised, are those of `play`; without `seconds` it continues until an exception.
    """
    learning, _ = tested_learning(config, command)
    steps = itertools.count() if seconds is None else range(max(round(seconds / step_length(config)), 1))
    with closing(VectorEnv(config, learning, autoreset_mode='SameStep', arrays=arrays)) as envs, shown(envs):
        obs = started(policy, envs)
        for _ in steps:
            obs, *_ = envs.step(policy(obs))


def _tiles(
    policy: ActFn,
    config: Config,
    learning: LearningCfg,
    shown: list[int],
    size: tuple[int, int],
    arrays: Arrays,
    camera: Camera = None,
) -> Iterator[tuple[int, list[Image]]]:
    """Run; yields the numbers of the steps that are shown and the cameras' images.

    The step in which an episode ends shows its end, the next one how another episode begins.
    """
    with closing(VectorEnv(config, learning, autoreset_mode='NextStep', arrays=arrays)) as envs:
        obs = started(policy, envs)
        core = envs.core
        pictures = EnvPictures(
            *(envs, core.runner, 'rgb_array', camera, size, core.learning.robot),
            markers=functools.partial(command_markers, core),
            quality='full',
        )
        for step in range(shown[-1] + 1):
            if step:
                obs, *_ = envs.step(policy(obs))
            if step in shown:
                yield step, pictures.render()


def _write_strip(path: Path, frames: Iterator[tuple[float, list[Image]]], rate: float) -> None:
    """Write a row of images for each env."""
    columns = [[(f'{time:.2f} s', tile) for tile in tiles] for time, tiles in frames]
    first, *others = zip(*columns, strict=True)
    _draw(path, [first, *([('', tile) for _, tile in row] for row in others)])


def _draw(path: Path, rows: Sequence[Sequence[tuple[str, Image]]]) -> None:
    """Write rows of images with titles. ImportError if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f'an image needs matplotlib ({error}): {install_hint("cli")}') from error
    height, width, _ = rows[0][0][1].shape
    columns, line, gap = len(rows[0]), 30, 2  # pixels: titles, and between frames
    across, down = columns * width, len(rows) * (height + line)
    figure = Figure(figsize=(across / 100, down / 100), dpi=100)
    sides = {'left': 0.5 * gap / across, 'right': 1.0 - 0.5 * gap / across, 'bottom': 0.0, 'top': 1.0 - line / down}
    between = {'wspace': gap / (width - gap), 'hspace': line / height}
    axes = figure.subplots(len(rows), columns, squeeze=False, gridspec_kw={**sides, **between})
    for row, cells in enumerate(rows):
        for column, (title, tile) in enumerate(cells):
            axes[row, column].imshow(tile)
            axes[row, column].set_axis_off()
            axes[row, column].set_title(title, fontsize=9)
    figure.savefig(path, format='png')


def _write_video(path: Path, frames: Iterator[tuple[float, list[Image]]], rate: float) -> None:
    with Video(path, rate) as video:
        for _, tiles in frames:
            video.add(_mosaic(tiles))


def _mosaic(tiles: list[Image]) -> Image:
    """Return tiles side by side in a near-square grid; cells without one are black."""
    columns = math.isqrt(len(tiles) - 1) + 1
    empty = [np.zeros_like(tiles[0])] * (-len(tiles) % columns)
    grid = [*tiles, *empty]
    return np.vstack([np.hstack(grid[i : i + columns]) for i in range(0, len(grid), columns)])
