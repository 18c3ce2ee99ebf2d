"""Videos of the whole grid or of one env, in real time.

Static parts are rendered when an episode starts; later images cost only their moving parts. They are
those of `grid.render_tile`, except for parts of a few pixels (see `RenderRequest`). An env that has made no step
since the last image is not rendered again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.env_cameras import TOP, EnvCameras
from internutopia.core.runner.env_group import EnvSlot
from internutopia.core.runner.grid import (
    GridPart,
    Where,
    merge_parts,
    part_of,
    part_requests,
    tile_distance,
)
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.vec_env import Env
from internutopia.rendering.camera import CameraPose, Layer, RenderRequest
from internutopia.rendering.video import Image, Video


@dataclass(frozen=True)
class _Moving:
    """Moving parts of an env after a step: their pixels, colours `(k, 3)` and distances `(k,)`."""

    step: int
    pixels: NDArray[np.intp]
    colours: NDArray[np.uint8]
    distances: NDArray[np.float64]


class GridFilm:
    """Video of the envs of a runner that hold an episode.

    Args:
        runner: runner of the envs; images must be `'fast'` ones.
        pose: the camera, world frame.
        size: width and height [pixels].
    """

    def __init__(self, runner: SimulatorRunner, pose: CameraPose, size: tuple[int, int]):
        self._runner, self._pose, self._size = runner, pose, size
        self._slots: dict[int, EnvSlot] = {}
        self._still: dict[int, GridPart] = {}
        self._moving: dict[int, _Moving] = {}
        self._ground = merge_parts([], [], size)

    def picture(self) -> Image:
        """Render the current image `(height, width, 3)`; NoOpenGLError if nothing can be rendered here."""
        slots = {env_id: slot for env_id, slot in enumerate(self._runner.envs) if slot is not None}
        if slots != self._slots:
            self._build(slots)
        moved = [i for i, slot in slots.items() if i not in self._moving or self._moving[i].step != slot.step]
        for where, request in self._render(moved, 'moving'):
            self._moving[request.env_id] = self._found(where, request)
        picture = self._ground.picture.reshape(-1, 3).copy()
        nearest = self._ground.distance.ravel().copy()
        for moving in self._moving.values():
            front = moving.distances < nearest[moving.pixels]
            pixels = moving.pixels[front]
            picture[pixels], nearest[pixels] = moving.colours[front], moving.distances[front]
        return picture.reshape(self._ground.picture.shape)

    def _build(self, slots: dict[int, EnvSlot]) -> None:
        """Render the static parts of new episodes, after episodes have started or ended."""
        if len(slots) > 1:
            self._runner.warn_of_overlap()
        # which env wins where floors lie in one another depends on which of them are shown
        kept = (
            {i for i, slot in slots.items() if self._slots.get(i) is slot} if slots.keys() == self._slots.keys() else ()
        )
        self._slots = slots
        self._still = {env_id: part for env_id, part in self._still.items() if env_id in kept}
        self._moving = {env_id: moving for env_id, moving in self._moving.items() if env_id in kept}
        shown, cell = list(slots), self._runner.spacing
        for each in self._render([env_id for env_id in shown if env_id not in kept], 'still'):
            part = part_of(*each, shown, cell)
            self._still[part.env_id] = part
        self._ground = merge_parts([self._still[i] for i in shown if i in self._still], shown, self._size)

    def _render(self, env_ids: Sequence[int], layer: Layer) -> list[tuple[Where, RenderRequest]]:
        world = self._runner.world
        arguments = self._pose, self._size, self._runner.spacing, layer
        requests = part_requests(world, env_ids, list(self._slots), *arguments)
        if requests:
            world.render([request for _, request in requests])
        return requests

    def _found(self, where: Where, request: RenderRequest) -> _Moving:
        rgba, depth = request.frame.rgba, request.frame.depth
        assert rgba is not None and depth is not None
        top, bottom, left, right = request.frame.bounds
        rows, columns = np.nonzero(rgba[top:bottom, left:right, 3])
        rows, columns = rows + top, columns + left
        shown = depth[rows, columns]
        points = request.camera_pose.points_at(rows, columns, shown, request.frame.size)
        number = list(self._slots).index(request.env_id)
        distances = tile_distance(shown, points, self._runner.spacing, number)
        pixels = (rows + where[0].start) * self._size[0] + columns + where[1].start
        return _Moving(self._slots[request.env_id].step, pixels, rgba[rows, columns, :3], distances)


_RATE = 15.0  # frames per second, at most
_SIZE = 640, 480  # pixels


class Film:
    """Recorder of `env` into an `.mp4` or `.gif` file, by calls of `on_step()` after every step; a context manager.

    Args:
        env: env to record; it is open as long as the video.
        path: the file.
        size: width and height [pixels]; None: 640 x 480.
        camera: None views all that is recorded from above a corner, or follows the robot if that is a single one;
            `'top'` views it straight from above; others, of one env, are those of
            `internutopia.core.runner.env_cameras`.
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
    """Return a function that captures an image."""
    alone = env.num_envs == 1 and all(len(task.robots) == 1 for task in env.config.task_configs)
    of_all = env_id is None and (camera == TOP or (camera is None and not alone))
    if env.is_remote:
        if not of_all:
            raise ValueError(
                f'camera {camera!r} of env {env_id or 0}: the envs of a distributed run are in other processes; '
                "record all of them, with camera 'top' or None"
            )
        return lambda: env.render(camera, size)
    runner = env.runner
    if of_all and env.config.simulator.render_quality != 'full':
        return GridFilm(runner, runner.camera_pose(camera, size), size).picture
    if of_all:  # shadows and smooth edges: what moves cannot be rendered alone
        return lambda: env.render(camera, size)
    chosen = env_id or 0
    cameras = EnvCameras(runner, camera, size)
    return lambda: cameras.render(chosen)
