"""Robot camera: follows a robot of an env, at a distance that shows the robot and its goals.

It looks from the front and the right at where the robot is headed when an episode starts, and keeps that direction.
Walls never block the view: the camera stays in front of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.base import World
from internutopia.rendering.camera import CameraPose, Intrinsics, half_angle
from internutopia.util.arrays import to_host
from internutopia.util.rotations import yaw_of

Floats = NDArray[np.float64]

_FOVY = 45.0  # degrees
_AZIMUTH = math.radians(-55.0)  # of the camera, seen from the robot, from where that is headed
_ELEVATION = math.radians(20.0)
_SIDE = math.radians(-90.0), math.radians(4.0)  # the same, from the side
_ROOM = 1.15  # around what is shown, as a multiple of its size
_FARTHEST = 4.0  # times the robot's size
_FARTHEST_METRES = 1.0  # m, but so far in any case
_GROUPS = (0, 1, 2)  # of geoms that are seen
_BEFORE_WALLS = 0.9  # share of the distance to a wall


class RobotCamera:
    """Camera that follows a robot of an env from its current state, the start of an episode.

    Args:
        world: the world.
        env_id: the env.
        robot: name of the robot. KeyError with close matches.
        size: width and height of the pictures [pixels].
        side: whether it looks straight from the right instead.

    Attributes:
        radius: of a ball around the robot when the episode started [m].
        ground: height of the robot's lowest point then [m], env frame.
    """

    def __init__(self, world: World, env_id: int, robot: str, size: tuple[int, int], side: bool = False):
        self._view = world.articulation(robot, env_id)
        self._env_id = env_id
        low, high = self._view.box(env_id)
        position, orientation = (to_host(values)[env_id] for values in self._view.get_root_poses())
        # of the middle of the robot from its root; its height stays: who falls, falls in the picture
        self._offset = 0.5 * (low + high) - [*position[:2], 0.0]
        self.radius = 0.5 * float(np.linalg.norm(high - low))
        self.ground = float(low[2])
        azimuth, elevation = _SIDE if side else (_AZIMUTH, _ELEVATION)
        azimuth += float(yaw_of(orientation.astype(np.float64)))
        level = math.cos(elevation)
        self._towards = np.array([level * math.cos(azimuth), level * math.sin(azimuth), math.sin(elevation)])
        self._intrinsics = Intrinsics.of_height(half_angle(_FOVY), size)
        half = min(self._intrinsics.half_width, self._intrinsics.half_height)
        self._distance = _ROOM / math.sin(math.atan(half))  # of the camera from a ball, in its radii

    @property
    def middle(self) -> Floats:
        """Position of the robot `(3,)` [m], env frame: above its root, at the height of its middle at the start."""
        x, y, _ = to_host(self._view.get_root_poses()[0])[self._env_id]
        return self._offset + [float(x), float(y), 0.0]

    def pose(self, goals: Sequence[Any] = ()) -> CameraPose:
        """Return the current pose, env frame; the points `goals` `(3,)` [m] are in the picture if they are near."""
        middle = self.middle
        target, radius = middle, self.radius
        if len(goals):
            way = np.asarray(goals, np.float64).mean(axis=0) - middle
            length = float(np.linalg.norm(way))
            more = min(0.5 * length, max(_FARTHEST * self.radius, _FARTHEST_METRES))
            target, radius = middle + more / max(length, 1e-9) * way, self.radius + more
        position = target + self._distance * radius * self._towards
        free = self._free_share(middle, position)
        if free < 1.0:
            reach = max(_BEFORE_WALLS * free * float(np.linalg.norm(position - middle)), self.radius)
            target, position = middle, middle + reach * self._towards
        return CameraPose.looking_at(target, position, self._intrinsics)

    def _free_share(self, start: Floats, end: Floats) -> float:
        """Return the fraction of a line of sight that is free, the robot apart; 1 for all of it."""
        way = end - start
        length = float(np.linalg.norm(way))
        (distances,) = self._view.cast_rays(
            np.array([self._env_id]),
            start[None, None],
            (way / length)[None, None],
            groups=_GROUPS,
            link=self._view.body_names[0],
        )
        return float(min(distances[0] / length, 1.0))
