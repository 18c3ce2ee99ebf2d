"""Stage: envs as 3D nodes of a page, a node for each body that moves by itself, with an instance in each env.

Geometry is sent when the scenes change; a frame is two arrays for each body that has moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.framing import AZIMUTHS, Box, union
from internutopia.model.meshes.hulls import box_corners
from internutopia.model.scene_bounds import geom_boxes, is_sky
from internutopia.rendering.camera import CameraPose, Intrinsics
from internutopia.rendering.geom_groups import SHOWN_GROUPS, shown_geoms
from internutopia.util.rotations import yaw_of
from internutopia.viewer.controls import Controls, Ray
from internutopia.viewer.frames import ArmKey, ArmPose, EnvSnapshot, ShownScene
from internutopia.viewer.geometry import body_files

if TYPE_CHECKING:
    import viser

_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_NEAREST, _FARTHEST = 0.6, 5.0  # m, of the camera from a robot
_WIDEST = 100.0  # m, that a cell is made wider than the distance between envs
_PAST = 1e-3  # m, behind a surface of the robot itself
_FROM_ABOVE = np.array([0.6, -0.65, 0.7])  # direction of the camera from all that is shown
_LENS = Intrinsics(0.7, 0.6)  # a part of what pages show that their panel does not cover
_SIZE = 0.15  # m, of a handle
_MARK_SIZE = 0.06  # m, radius
_OF_TASK, _OF_PAGE = (25, 205, 50), (230, 120, 0)  # colours of goals


class Stage:
    """3D scene of the envs on all pages of a server.

    Attributes:
        shift: offset of everything `(3,)` [m], in addition to the origins of the envs.
    """

    def __init__(self, server: viser.ViserServer):
        self._server = server
        _light(server)
        self._files: WeakKeyDictionary[ShownScene, dict[float, dict[int, bytes]]] = WeakKeyDictionary()
        self.shift = np.zeros(3)
        self._casts: list[_Cast] = []
        self._spread = 1.0  # distance between envs, relative to that of the run
        self._shown: tuple[float, list[tuple[int, ShownScene]]] = 0.0, []
        self._view: tuple[int, str | None] = (0, None)  # what the cameras were placed for

    def show(self, envs: Sequence[EnvSnapshot], follow: str | None) -> None:
        """Show envs; `follow` is the robot of the first one that stays in the middle, None for no robot."""
        if not envs or follow not in envs[0].scene.robots:
            follow = None
        cell = _cell([env.origin for env in envs])
        shown = cell, [(env.env_id, env.scene) for env in envs]
        with self._server.atomic():
            if shown != self._shown:
                self._cast(envs, cell)
                self._shown = shown
            for cast in self._casts:
                cast.update(envs)
            self.shift = self._shift(envs, follow)
            for cast in self._casts:
                cast.pose(np.array([envs[index].origin for index in cast.indices]) * self._spread + self.shift)
        view = len(envs), follow
        if envs and view != self._view:
            self._place_cameras(envs, follow)
            self._view = view

    def joint_positions(self, robot: str) -> NDArray[np.float64]:
        """Return the joint positions `(dof,)` [rad or m] of a robot of the env that was shown first."""
        cast = self._casts[0]
        return cast.data[0].qpos[cast.scene.robots[robot].qpos]

    def point_under(self, ray: Ray) -> tuple[float, ...] | None:
        """Return the first point of the env shown first that a ray hits `(3,)` [m], env frame; None for no hit."""
        origin, direction = (np.array(part, np.float64) for part in ray)
        cast, geom = self._casts[0], np.zeros(1, np.int32)
        origin -= self.shift
        distance = mujoco.mj_ray(cast.scene.model, cast.data[0], origin, direction, SHOWN_GROUPS, 1, -1, geom)
        return None if distance < 0.0 else tuple((origin + distance * direction).tolist())

    def _cast(self, envs: Sequence[EnvSnapshot], cell: float) -> None:
        """Replace the scenes on the stage; the ground of each ends at the border of its cell.

        Cells are as wide as envs are apart, or as the widest scene.
        """
        for cast in self._casts:
            cast.remove()
        by_scene: dict[ShownScene, list[int]] = {}
        for index, env in enumerate(envs):
            by_scene.setdefault(env.scene, []).append(index)
        self._casts = []
        width = cell if math.isinf(cell) else max(cell, min(_widest(scene.model for scene in by_scene), _WIDEST))
        self._spread, cell = 1.0 if math.isinf(cell) else width / cell, width
        for number, (scene, indices) in enumerate(by_scene.items()):
            by_cell = self._files.setdefault(scene, {})
            if cell not in by_cell:
                by_cell[cell] = body_files(scene.model, cell)
            self._casts.append(_Cast(self._server, f'/envs/scene_{number}', scene, indices, by_cell[cell]))

    def _shift(self, envs: Sequence[EnvSnapshot], follow: str | None) -> NDArray[np.float64]:
        """Return the offset `(3,)` [m] that keeps a robot in the middle; its height is 0."""
        if follow is None:
            return np.zeros(3)
        root = self._casts[0].data[0].xpos[envs[0].scene.robots[follow].root]
        return -(root + envs[0].origin) * [1.0, 1.0, 0.0]

    def _place_cameras(self, envs: Sequence[EnvSnapshot], follow: str | None) -> None:
        """Place the cameras of pages next to a robot where nothing blocks the view, or above all that is shown."""
        if follow is None:
            boxes = [
                np.array(_box(cast.scene.model, data)) + self._spread * envs[index].origin
                for cast in self._casts
                for index, data in zip(cast.indices, cast.data, strict=True)
            ]
            low, high = union(boxes) or (np.zeros(3), np.ones(3))
            pose = CameraPose.framing(box_corners(low, high), _FROM_ABOVE, _LENS)
            target = pose.position - pose.rotation[:, 2] * (pose.position[2] - low[2]) / pose.rotation[2, 2]
            position = pose.position
        else:
            cast = self._casts[0]
            robot = cast.scene.robots[follow].root
            root = cast.data[0].xpos[robot]
            middle = root * [1.0, 1.0, 0.7]
            distance = float(np.clip(2.2 * cast.reach(follow), _NEAREST, _FARTHEST))
            yaw = float(yaw_of(cast.data[0].xquat[robot]))
            ways = [np.array([math.cos(yaw + a), math.sin(yaw + a), 0.5]) / math.hypot(1.0, 0.5) for a in AZIMUTHS]
            free = [cast.free_length(middle, way, distance, robot) for way in ways]
            best = int(np.argmax(free))  # the first of those with a free view
            target = middle + self.shift + envs[0].origin
            position = target + (distance if free[best] == distance else 0.9 * free[best]) * ways[best]
        for camera in (self._server.initial_camera, *(each.camera for each in self._server.get_clients().values())):
            camera.position, camera.look_at = position, target


def _box(model: mujoco.MjModel, data: mujoco.MjData) -> Box:
    """Return the box around what is shown, planes and skies apart; `data` has the poses of geoms."""
    low, high = geom_boxes(model, data)
    seen = shown_geoms(model)
    seen &= model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    seen &= ~np.array([is_sky(model.geom(i).name) for i in range(model.ngeom)], bool)
    return union([*np.stack([low, high], axis=1)[seen]]) or (np.array([-1.0, -1.0, 0.0]), np.ones(3))


def _widest(models: Iterable[mujoco.MjModel]) -> float:
    """Return the distance [m] between envs at which no two of these models reach into each other."""
    boxes: list[Box] = []
    for model in models:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        boxes.append(_box(model, data))
    around = union(boxes)
    return 0.0 if around is None else float((around[1] - around[0])[:2].max())


def _cell(origins: Sequence[NDArray[np.float64]]) -> float:
    """Return the distance between neighbours on the grid [m]; infinite for a single env."""
    places = np.unique(np.array(origins).reshape(-1, 3)[:, :2].round(6), axis=0)
    gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)
    return float(gaps[gaps > 0.0].min(initial=np.inf))


class _Cast:
    """Nodes of the envs that run one scene: of those shown, the ones of `indices`; `data` is their state."""

    def __init__(
        self, server: viser.ViserServer, path: str, scene: ShownScene, indices: list[int], files: dict[int, bytes]
    ):
        self.scene = scene
        self.indices = indices
        self.data = [mujoco.MjData(scene.model) for _ in indices]
        one = len(indices) == 1
        self._nodes = {body: (_Node if one else _Instances)(server, f'{path}/{body}', file, len(indices))
                       for body, file in files.items()}  # fmt: skip

    def update(self, envs: Sequence[EnvSnapshot]) -> None:
        """Compute the poses of the bodies."""
        for index, data in zip(self.indices, self.data, strict=True):
            mujoco.mj_setState(self.scene.model, data, envs[index].state, _STATE)
            mujoco.mj_kinematics(self.scene.model, data)

    def pose(self, origins: NDArray[np.float64]) -> None:
        """Set the poses of all bodies, in envs at `origins` `(n, 3)` [m]."""
        for body, node in self._nodes.items():
            positions = np.array([data.xpos[body] for data in self.data]) + origins
            node.pose(positions, np.array([data.xquat[body] for data in self.data]))

    def reach(self, robot: str) -> float:
        """Return the distance from a robot's root to its farthest point [m]."""
        model, data = self.scene.model, self.data[0]
        root = self.scene.robots[robot].root
        own = np.flatnonzero(model.body_rootid[model.geom_bodyid] == model.body_rootid[root])
        return float((np.linalg.norm(data.geom_xpos[own] - data.xpos[root], axis=-1) + model.geom_rbound[own]).max())

    def free_length(self, start: NDArray[np.float64], way: NDArray[np.float64], length: float, robot: int) -> float:
        """Return how far the line from a point `(3,)` [m] is free, the body `robot` and what hangs on it apart."""
        model, data, geom = self.scene.model, self.data[0], np.zeros(1, np.int32)
        reached = 0.0
        while reached < length:
            distance = mujoco.mj_ray(model, data, start + reached * way, way, SHOWN_GROUPS, 1, -1, geom)
            reached += distance
            if distance < 0.0:
                break
            if model.body_rootid[model.geom_bodyid[geom[0]]] != model.body_rootid[robot]:
                return min(reached, length)
            reached += _PAST
        return length

    def remove(self) -> None:
        """Remove the nodes."""
        for node in self._nodes.values():
            node.handle.remove()


class _Node:
    """Node of a body in one env; browsers move it faster than one of many instances."""

    def __init__(self, server: viser.ViserServer, path: str, file: bytes, _: int):
        self.handle = server.scene.add_glb(path, file, cast_shadow=False, receive_shadow=False)

    def pose(self, positions: NDArray[np.float64], wxyzs: NDArray[np.float64]) -> None:
        """Set position `(1, 3)` [m] and orientation `(1, 4)`."""
        self.handle.position, self.handle.wxyz = positions[0], wxyzs[0]


class _Instances:
    """Node of a body in many envs."""

    def __init__(self, server: viser.ViserServer, path: str, file: bytes, count: int):
        level = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        self.handle = server.scene.add_batched_glb(
            path, file, level, np.zeros((count, 3)), lod='off', cast_shadow=False, receive_shadow=False
        )

    def pose(self, positions: NDArray[np.float64], wxyzs: NDArray[np.float64]) -> None:
        """Set positions `(n, 3)` [m] and orientations `(n, 4)` of the instances."""
        self.handle.batched_positions = positions.astype(np.float32)
        self.handle.batched_wxyzs = wxyzs.astype(np.float32)


def _light(server: viser.ViserServer) -> None:
    """Add light from the sky and from one side: viser's default lights are too bright for colours made for MuJoCo."""
    server.scene.configure_default_lights(False)
    server.scene.configure_environment_map(None)
    server.scene.add_light_hemisphere(
        '/lights/sky', sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=1.8
    )
    server.scene.add_light_directional('/lights/sun', intensity=1.8, position=(1.0, -2.0, 4.0))


class Targets:
    """Handles and marks on all pages of a server.

    Args:
        server: of the pages.
        controls: receives the input.
    """

    def __init__(self, server: viser.ViserServer, controls: Controls):
        self._scene = server.scene
        self._controls = controls
        self._handles: dict[ArmKey, _ArmHandle] = {}
        self._marks: dict[str, viser.IcosphereHandle] = {}

    def show(
        self, arms: Mapping[ArmKey, ArmPose], goals: Mapping[str, NDArray[np.float64]], shift: NDArray[np.float64]
    ) -> None:
        """Show handles of these arms, and goals of a task and of pages; all is moved by `shift` `(3,)` [m]."""
        for key in self._handles.keys() - arms.keys():
            self._handles.pop(key).remove()
        for key, pose in arms.items():
            if key not in self._handles:
                self._handles[key] = _ArmHandle(self._scene, self._controls, key)
            self._handles[key].show(pose, shift)
        marks = {f'/commands/{name}': (goal, _OF_TASK) for name, goal in goals.items()}
        marks |= {
            f'/goals/{robot}': (np.array(command.goal), _OF_PAGE)
            for (env_id, robot), command in list(self._controls.commands.items())
            if command.goal is not None and env_id == self._controls.env_id
        }
        for name in self._marks.keys() - marks.keys():
            self._marks.pop(name).remove()
        for name, (goal, colour) in marks.items():
            if name not in self._marks:
                self._marks[name] = self._scene.add_icosphere(name, _MARK_SIZE, colour, cast_shadow=False)
            self._marks[name].position = goal + shift


class _ArmHandle:
    """Handle of one arm."""

    def __init__(self, scene: viser.SceneApi, controls: Controls, key: ArmKey):
        self._controls, self._key = controls, key
        _, robot, arm = key
        self._frame = scene.add_frame(f'/targets/{robot}/{arm}', show_axes=False)
        self._handle = scene.add_transform_controls(f'/targets/{robot}/{arm}/pose', _SIZE, depth_test=False)
        self._handle.on_update(self._send_commands)

    def show(self, pose: ArmPose, shift: NDArray[np.float64]) -> None:
        """Show the arm's pose."""
        position, orientation = pose.frame
        self._frame.position, self._frame.wxyz = position + shift, orientation
        env_id, robot, arm = self._key
        if arm not in self._controls.command(env_id, robot).poses:
            self._handle.position, self._handle.wxyz = pose.end_effector

    def remove(self) -> None:
        """Remove the handle."""
        self._frame.remove()

    async def _send_commands(self, event: Any) -> None:  # on the server's loop: updates stay in their order
        pose = tuple(map(float, (*event.target.position, *event.target.wxyz)))
        self._controls.move_arm(*self._key, pose)
