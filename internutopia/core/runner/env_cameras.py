"""Env cameras: one camera, named by the caller, in each of several envs.

| camera | where it is |
|---|---|
| None, `'follow'` | beside the first robot, and follows it |
| `'follow:ROBOT'` | the same, of that robot |
| `'side'`, `'side:ROBOT'` | likewise, straight from its right |
| `'top'` | above the middle of the env, looking down |
| a name or the end of a prim path | the camera of that name of a robot, or else of the scene |
| `'robots/ROBOT/PATH'`, `'scene/PATH'` | that camera of that robot, or of the scene |
| `(position, target)` | at the first point, looking at the second, env frame [m] |
"""

from __future__ import annotations

from typing import Any

from internutopia.core.runner.env_slot import EnvSlot
from internutopia.core.runner.grid import FREE_FOVY, env_box, overview_pose, top_pose
from internutopia.core.runner.robot_camera import RobotCamera
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.rendering.camera import CameraPose, Intrinsics, half_angle
from internutopia.util.arrays import to_host
from internutopia.util.errors import EnvValueError
from internutopia.util.rotations import quat_to_matrix

Camera = str | tuple[Any, Any] | None

FOLLOW, SIDE, TOP = 'follow', 'side', 'top'


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
        if isinstance(camera, str) and camera.partition(':')[0] in (FOLLOW, SIDE):
            self._camera, _, named = camera.partition(':')
            robot = named or robot
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
        camera = RobotCamera(self._runner.world, env_id, robot, self._size, self._camera == SIDE)
        self._followers[env_id] = slot, camera
        return camera

    def pose(self, env_id: int, goals: Any = ()) -> CameraPose:
        """Return the current camera pose, env frame; `goals` are points `(3,)` [m] to show beside a followed robot.

        Raises:
            ValueError: there is no such camera, or its two points are one.
            KeyError: there is no such robot.
        """
        camera = self._camera
        if camera in (FOLLOW, SIDE):
            follower = self.follower(env_id)
            box = env_box(self._runner.spacing)
            return overview_pose(*box, self._size) if follower is None else follower.pose(goals)
        if camera == TOP:
            return top_pose(*env_box(self._runner.spacing), self._size)
        if isinstance(camera, str):
            return self._mounted(env_id, camera)
        position, target = camera
        lens = Intrinsics.of_height(half_angle(FREE_FOVY), self._size)
        return CameraPose.looking_at(target, position, lens)

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
            env_id, f"camera {name!r}: expected 'follow:ROBOT', 'top' or the name of a camera; {'; '.join(faults)}"
        )
