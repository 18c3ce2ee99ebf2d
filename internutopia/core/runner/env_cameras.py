"""Env cameras: one camera in each of several envs, which the caller names or which follows a robot.

| camera | where it is |
|---|---|
| None, `'follow'` | beside the first robot, and follows it |
| `'follow:ROBOT'` | the same, of that robot |
| `'side'`, `'side:ROBOT'` | likewise, straight from its right |
| `'front'`, `'front:ROBOT'` | likewise, straight from its front |
| `'top'` | above the middle of the env, looking down |
| a name or the end of a prim path | the camera of that name of a robot, or else of the scene |
| `'robots/ROBOT/PATH'`, `'scene/PATH'` | that camera of that robot, or of the scene |
| `(position, target)` | at the first point, looking at the second, env frame [m] |

One that follows looks from the front and the right at where the robot is headed when an episode starts, or from the
first other side from which nothing is in between, and keeps that direction.
Walls never block the view: the camera stays in front of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.env_group import EnvSlot
from internutopia.core.runner.framing import AZIMUTHS, FREE_FOVY, Camera, overview_pose, top_pose
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.engines.base import World
from internutopia.rendering.camera import CameraPose, Frame, Intrinsics, RenderRequest, half_angle
from internutopia.rendering.video import Image
from internutopia.util.arrays import to_host
from internutopia.util.errors import EnvValueError
from internutopia.util.rotations import quat_to_matrix, yaw_of

Floats = NDArray[np.float64]

FOLLOW, TOP = 'follow', 'top'
# Cameras that follow a robot: from where about its heading, the first that is free, and how far above [rad]
VIEWS = {
    FOLLOW: (AZIMUTHS, math.radians(20.0)),
    'side': ((math.radians(-90.0),), math.radians(4.0)),
    'front': ((0.0,), math.radians(4.0)),
}
_FOVY = 45.0  # degrees
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
        view: one of `VIEWS`.

    Attributes:
        radius: of a ball around the robot when the episode started [m].
        ground: height of the robot's lowest point then [m], env frame.
    """

    def __init__(self, world: World, env_id: int, robot: str, size: tuple[int, int], view: str = FOLLOW):
        self._view = world.articulation(robot, env_id)
        self._env_id = env_id
        low, high = self._view.box(env_id)
        position, orientation = (to_host(values)[env_id] for values in self._view.get_root_poses())
        # of the middle of the robot from its root; its height stays: who falls, falls in the picture
        self._offset = 0.5 * (low + high) - [*position[:2], 0.0]
        self.radius = 0.5 * float(np.linalg.norm(high - low))
        self.ground = float(low[2])
        self._intrinsics = Intrinsics.of_height(half_angle(_FOVY), size)
        half = min(self._intrinsics.half_width, self._intrinsics.half_height)
        self._distance = _ROOM / math.sin(math.atan(half))  # of the camera from a ball, in its radii
        yaw, (azimuths, elevation) = float(yaw_of(orientation.astype(np.float64))), VIEWS[view]
        level, middle = math.cos(elevation), self.middle
        ways = [
            np.array([level * math.cos(yaw + azimuth), level * math.sin(yaw + azimuth), math.sin(elevation)])
            for azimuth in azimuths
        ]
        free = [self._free_share(middle, middle + self._distance * self.radius * way) for way in ways]
        self._towards = ways[int(np.argmax(free))]  # the first of those with a free view

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


class EnvCameras:
    """Cameras of envs for pictures of one size.

    Args:
        runner: runner of the envs.
        camera: the camera, see the module.
        size: width and height [pixels].
        robot: name of the robot to follow unless `camera` names another; None for the first.
    """

    def __init__(self, runner: SimulatorRunner, camera: Camera, size: tuple[int, int], robot: str | None = None):
        self._runner, self._size = runner, size
        self._camera = FOLLOW if camera is None else camera
        if isinstance(camera, str) and camera.partition(':')[0] in VIEWS:
            self._camera, _, named = camera.partition(':')
            robot = named or robot
        self._view = self._camera if isinstance(self._camera, str) and self._camera in VIEWS else None
        self._robot = robot
        self._followers: dict[int, tuple[EnvSlot, RobotCamera]] = {}

    def follower(self, env_id: int) -> RobotCamera | None:
        """Return the camera that follows the robot of an env that holds an episode; None if there is no robot.

        KeyError for a robot that is not there.
        """
        slot = self._runner.slot(env_id)
        known, camera = self._followers.get(env_id, (None, None))
        if known is slot:
            return camera
        robot = self._robot or next(iter(slot.task.robots), None)
        if robot is None:
            return None
        camera = RobotCamera(self._runner.world, env_id, robot, self._size, self._view or FOLLOW)
        self._followers[env_id] = slot, camera
        return camera

    def pose(self, env_id: int, goals: Any = ()) -> CameraPose:
        """Return the current camera pose, env frame; `goals` are points `(3,)` [m] to show beside a followed robot.

        Raises:
            ValueError: there is no such camera, or its two points are one.
            KeyError: there is no such robot.
        """
        camera = self._camera
        if self._view is not None:
            follower = self.follower(env_id)
            if follower is not None:
                return follower.pose(goals)
        if self._view is not None or camera == TOP:
            pose = top_pose if camera == TOP else overview_pose
            return pose(self._runner.framing.box_of(self._runner.slot(env_id)), self._size)
        if isinstance(camera, str):
            return self._mounted(env_id, camera)
        position, target = camera
        lens = Intrinsics.of_height(half_angle(FREE_FOVY), self._size)
        return CameraPose.looking_at(target, position, lens)

    def render(self, env_id: int) -> Image:
        """Render an env by itself, RGB `(height, width, 3)`; black without an episode. Raises what `pose` does."""
        frame = Frame.blank(self._size, ('rgba',))
        assert frame.rgba is not None
        if self._runner.envs[env_id] is not None:
            with self._runner.scenes.entered():
                self._runner.world.render([RenderRequest(env_id, self.pose(env_id), frame)])
        return np.ascontiguousarray(frame.rgba[..., :3])

    def _mounted(self, env_id: int, name: str) -> CameraPose:
        """Return the pose of the camera of that name, of a robot or the scene."""
        faults: list[str] = []
        robots = self._runner.slot(env_id).task.robots
        places = [(robot, name) for robot in (*robots, None)]
        kind, _, rest = name.partition('/')
        robot, _, path = rest.partition('/')
        if kind == 'robots' and robot in robots:
            places = [(robot, path)]
        elif kind == 'scene':
            places = [(None, rest)]
        for owner, path in places:
            try:
                view = self._runner.world.camera(owner, path, env_id)
            except ValueError as error:
                faults.append(str(error))
                continue
            position, orientation = (to_host(values)[env_id] for values in view.get_poses())
            rotation = quat_to_matrix(orientation.astype(float))
            return CameraPose(position.astype(float), rotation, view.intrinsics(env_id, self._size))
        raise EnvValueError(
            env_id,
            f"camera {name!r}: expected 'follow:ROBOT', 'side', 'front', 'top' or the name of a camera; "
            f'{"; ".join(faults)}',
        )
