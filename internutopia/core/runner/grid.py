"""Env grid: positions of envs, and one picture of all of them in their places.

Envs stand on a near-square grid.

Envs may run different scenes, which one OpenGL scene cannot hold: each env is drawn as the camera sees it from there,
and what is nearest wins at every pixel. Floors of neighbours lie in one another: there the env wins in whose cell the
point lies. In a large grid only the cells of the envs are drawn (as high as they are wide), not what lies outside.

Envs never touch, however near they stand: only pictures of all of them show that their scenes overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config, DistributedConfig
from internutopia.core.task.scene_builder import scene_spec
from internutopia.engines.base import SceneHandle, World
from internutopia.model.asset_files import limited_by
from internutopia.model.compiled import CompiledScene
from internutopia.model.meshes.hulls import box_corners
from internutopia.model.scene_bounds import SceneBounds
from internutopia.model.scene_cache import SCENES
from internutopia.rendering.camera import CameraPose, Frame, Layer, RenderRequest
from internutopia.rendering.video import Image
from internutopia.util import log
from internutopia.util.conventions import conventions_of

ConfigT = TypeVar('ConfigT', bound=Config)

_SMALLEST = 5.0  # m, also between scenes with nothing but a ground
_GAP = 0.5  # m


class SceneReach:
    """Extent of a set of scenes, any two of which may be neighbours.

    Attributes:
        length: the shortest distance [m] between envs at which they do not overlap; 0 if there are none.
    """

    def __init__(self) -> None:
        self.length = 0.0
        self._low, self._high = np.full(2, np.inf), np.full(2, -np.inf)  # of all scenes, env frame [m]
        self._known: WeakSet[CompiledScene] = WeakSet()
        self._warned = False

    @property
    def spacing(self) -> float:
        """Suggested distance [m]: with a gap, in steps of half a metre."""
        return max(math.ceil(2.0 * (self.length + _GAP)) / 2.0, _SMALLEST)

    def add(self, scene: SceneHandle) -> None:
        """Add a scene; robots, objects and endless grounds do not count."""
        if not isinstance(scene, CompiledScene) or scene in self._known:
            return
        self._known.add(scene)
        box = SceneBounds(scene).box
        if box is not None:
            low, high = box
            self._low, self._high = np.minimum(self._low, low[:2]), np.maximum(self._high, high[:2])
            self.length = float((self._high - self._low).max())

    def warn_of_overlap(self, spacing: float) -> None:
        """Warn, once, if scenes overlap at this distance [m]."""
        if spacing < self.length and not self._warned:
            self._warned = True
            log.warning(
                "Config.env_offset_size=%g m: scenes are up to %.3g m wide and overlap in images; %g or 'auto' sets "
                'them apart',
                *(spacing, self.length, self.spacing),
            )


def with_spacing(config: ConfigT) -> ConfigT:
    """Return the config with a number for `env_offset_size='auto'`, the same for all processes of a run.

    FileNotFoundError, ValueError: the scene of a task cannot be read.
    """
    if config.env_offset_size != 'auto':
        return config
    distribution = config.distribution_config if isinstance(config, DistributedConfig) else None
    reach = SceneReach()
    if config.env_num > 1 or (distribution is not None and distribution.proc_num > 1):
        for index, task in {id(task): (i, task) for i, task in enumerate(config.task_configs)}.values():
            try:
                model = scene_spec(task.model_copy(update={'robots': [], 'objects': []}))
                if model.asset is not None:
                    model = conventions_of(config.compat)(config).scene(model)
                    with limited_by(config.simulator.asset_limits):
                        reach.add(SCENES.get(model, float(config.simulator.physics_dt)))
            except Exception as error:
                error.add_note(f"while computing env_offset_size='auto' for the scene of task_configs[{index}]")
                raise
    return config.model_copy(update={'env_offset_size': reach.spacing})


Floats = NDArray[np.float64]

_DRAWN_WHOLE = 16  # envs, at most
_SAME = 1e-4  # share of the distance that is no distance
_OWN_CELL = 0.01  # share of the distance by which what lies in an env's own cell is put forward


def env_origins(env_num: int, size: float) -> NDArray[np.float64]:
    """Return the world positions of the env frames, `(env_num, 3)` [m].

    Env `i` stands at `(i // columns * size, i % columns * size, 0)` with `columns = ceil(sqrt(env_num))`; the side of
    the grid is at most `size * sqrt(env_num)` long.
    """
    columns = math.isqrt(env_num - 1) + 1
    ids = np.arange(env_num, dtype=np.float64)
    return np.stack([ids // columns * size, ids % columns * size, np.zeros(env_num)], axis=-1)


@dataclass(frozen=True)
class GridTile:
    """Picture of some envs: RGB `(height, width, 3)`, and the distance of each pixel, inf where nothing is drawn."""

    picture: Image
    distance: Floats


def render_tile(
    world: World, env_ids: Sequence[int], shown: Sequence[int], pose: CameraPose, size: tuple[int, int], cell: float
) -> GridTile:
    """Render some envs, black if there are none.

    Args:
        world: the world to draw.
        env_ids: the envs.
        shown: all envs in the picture that this becomes a part of; the first one draws the sky.
        pose: the camera, world frame.
        size: width and height of the picture [pixels].
        cell: length of a cell's side [m].
    """
    requests = part_requests(world, env_ids, shown, pose, size, cell)
    if requests:
        world.render([request for _, request in requests])
    return merge_parts([part_of(*each, shown, cell) for each in requests], shown, size)


Where = tuple[slice, slice]
"""Rows and columns of a part of a picture."""


@dataclass(frozen=True)
class GridPart:
    """Picture of one env: `picture` and `distance`, as in a `GridTile`, in a part of the picture."""

    env_id: int
    where: Where
    picture: Image
    distance: Floats


def part_requests(
    world: World,
    env_ids: Sequence[int],
    shown: Sequence[int],
    pose: CameraPose,
    size: tuple[int, int],
    cell: float,
    layer: Layer = 'all',
) -> list[tuple[Where, RenderRequest]]:
    """Return render requests for the visible envs, with their parts of the picture; arguments as in `render_tile`."""
    width, height = size
    requests: list[tuple[Where, RenderRequest]] = []
    for env_id in env_ids:
        own = pose.moved(-world.env_origins[env_id])
        whole = env_id == shown[0] or len(shown) <= _DRAWN_WHOLE
        part = (0, 0, width, height) if whole else _part(own, size, cell)
        if part is None:
            continue
        left, top, right, bottom = part
        lens = pose.intrinsics.crop(
            (2.0 * left / width - 1.0, 1.0 - 2.0 * bottom / height),
            (2.0 * right / width - 1.0, 1.0 - 2.0 * top / height),
        )
        frame = Frame.blank((right - left, bottom - top), ('rgba', 'depth'))
        where = slice(top, bottom), slice(left, right)
        requests.append((where, RenderRequest(env_id, replace(own, intrinsics=lens), frame, layer=layer)))
    return requests


def part_of(where: Where, request: RenderRequest, shown: Sequence[int], cell: float) -> GridPart:
    """Return the rendered part of an env."""
    rgba, depth = request.frame.rgba, request.frame.depth
    assert rgba is not None and depth is not None
    number = shown.index(request.env_id)
    distance = tile_distance(depth, request.camera_pose.points(depth), cell, number)
    return GridPart(request.env_id, where, rgba[..., :3], distance)


def merge_parts(parts: Sequence[GridPart], shown: Sequence[int], size: tuple[int, int]) -> GridTile:
    """Merge parts into one tile by the nearest pixel; the sky is that of the first of the shown envs."""
    width, height = size
    picture = np.zeros((height, width, 3), np.uint8)
    nearest = np.full((height, width), np.inf)
    for part in parts:
        front = part.distance < nearest[part.where]
        nearest[part.where][front] = part.distance[front]
        if part.env_id == shown[0]:
            front[:] = True  # the sky
        picture[part.where][front] = part.picture[front]
    return GridTile(picture, nearest)


def tile_distance(depth: NDArray[Any], points: Floats, cell: float, number: int) -> Floats:
    """Return distances biased so that where envs overlap the env of the cell is seen.

    Args:
        depth: distance of each pixel `(...)` [m].
        points: position of each pixel `(..., 3)` [m], env frame.
        cell: length of a cell's side [m].
        number: index of the env among those in the picture.
    """
    inside = (np.abs(points[..., :2]) <= 0.5 * cell).all(axis=-1)
    # of floors outside all cells, always the first one's
    return depth.astype(np.float64) * np.where(inside, 1.0 - _OWN_CELL, 1.0 + _SAME * number)


def merge_tiles(tiles: Sequence[GridTile]) -> Image:
    """Merge tiles into one picture by the nearest pixel; the sky is that of the first."""
    picture, nearest = tiles[0].picture.copy(), tiles[0].distance.copy()
    for tile in tiles[1:]:
        front = tile.distance < nearest
        picture[front], nearest[front] = tile.picture[front], tile.distance[front]
    return picture


def _part(pose: CameraPose, size: tuple[int, int], cell: float) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom [pixels] of an env's cell in the picture; None if it is outside."""
    half = 0.5 * cell
    places, ahead = pose.project(box_corners(np.array([-half, -half, 0.0]), np.array([half, half, cell])))
    if (ahead <= 0).all():
        return None
    if (ahead <= 0).any():  # the camera stands in or beside the cell
        return (0, 0, *size)
    (x0, y0), (x1, y1) = np.clip(places.min(axis=0), -1, 1), np.clip(places.max(axis=0), -1, 1)
    left, right = math.floor(0.5 * (x0 + 1) * size[0]), math.ceil(0.5 * (x1 + 1) * size[0])
    top, bottom = math.floor(0.5 * (1 - y1) * size[1]), math.ceil(0.5 * (1 - y0) * size[1])
    return (left, top, right, bottom) if right > left and bottom > top else None
