"""Grid film: one picture after another of all envs in their places, seen by a camera that does not move.

Static parts are rendered when an episode starts; later pictures cost only their moving parts. They are
those of `grid.render_tile`, but for parts of a few pixels (see `RenderRequest`). An env that has made no step
since the last picture is not rendered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.env_slot import EnvSlot
from internutopia.core.runner.grid import (
    GridPart,
    Image,
    Where,
    merge_parts,
    part_of,
    part_requests,
    tile_distance,
)
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.rendering.camera import CameraPose, Layer, RenderRequest


@dataclass(frozen=True)
class _Moving:
    """Moving parts of an env after a step: their pixels, colours `(k, 3)` and distances `(k,)`."""

    step: int
    pixels: NDArray[np.intp]
    colours: NDArray[np.uint8]
    distances: NDArray[np.float64]


class GridFilm:
    """Film of the envs of a runner that hold an episode.

    Args:
        runner: runner of the envs; pictures must be `'fast'` ones.
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
        """Render the current picture `(height, width, 3)`; NoOpenGLError if nothing can be rendered here."""
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
