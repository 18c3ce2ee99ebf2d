"""Cameras of a compiled scene, found by their prim paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import mujoco

from internutopia.model.compose import robot_prefix
from internutopia.model.spec import SCENE_PREFIX, RobotSpec
from internutopia.rendering.camera import Intrinsics, half_angle
from internutopia.util import did_you_mean


@dataclass(frozen=True)
class CameraLayout:
    """Address of a camera in `MjModel`; `body` is the one that it is mounted on, `follows`: but for its turns."""

    name: str
    camera: int
    body: int
    follows: bool


def camera_layouts(model: mujoco.MjModel) -> dict[str, CameraLayout]:
    """Return the cameras of a model by name."""
    names = (model.camera(i).name for i in range(model.ncam))
    tracks = model.cam_mode == mujoco.mjtCamLight.mjCAMLIGHT_TRACK
    return {
        name: CameraLayout(name, i, int(model.cam_bodyid[i]), bool(tracks[i])) for i, name in enumerate(names) if name
    }


def find_camera(model: mujoco.MjModel, cameras: Mapping[str, CameraLayout], robot: str | None, path: str) -> str:
    """Return the name of the camera at a prim path below a robot, or (None) below the scene.

    A camera is found by the end of its prim path or, where its asset has none, by the names of its link and its own:
    `torso/eye` is the camera `eye` on the link `torso`. ValueError naming the cameras there are.
    """
    prefix = SCENE_PREFIX if robot is None else robot_prefix(robot)
    path = path.strip('/')
    known: dict[str, str] = {}
    for name, layout in cameras.items():
        if name.startswith(prefix):
            own = name.removeprefix(prefix).strip('/')
            link = model.body(layout.body).name.removeprefix(prefix).strip('/')
            for alias in (own, f'{link}/{own}'):
                if alias == path or alias.endswith(f'/{path}'):
                    return name
            known[own if '/' in own else f'{link}/{own}'] = name
    whose = 'the scene' if robot is None else f'the model of robot {robot!r}'
    raise ValueError(f'there is no camera at {path!r} in {whose}; {did_you_mean(path, known)}')


def camera_intrinsics(model: mujoco.MjModel, camera: int, size: tuple[int, int]) -> Intrinsics:
    """Return the intrinsics of a camera for pictures of `size` (width, height) [pixels].

    Pixels are square: a camera with a sensor size shows its whole width, others their whole vertical field of
    view.
    """
    fovy = float(model.cam_fovy[camera])
    if model.cam_projection[camera] == mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC:
        return Intrinsics.of_height(0.5 * fovy, size, orthographic=True)
    width, focal = float(model.cam_sensorsize[camera, 0]), float(model.cam_intrinsic[camera, 0])
    if width > 0 and focal > 0:
        x, y = (float(value) / focal for value in model.cam_intrinsic[camera, 2:])
        return replace(Intrinsics.of_width(0.5 * width / focal, size, aperture=width), centre=(x, -y))
    return Intrinsics.of_height(half_angle(fovy), size)


def add_cameras(spec: mujoco.MjSpec, robots: Iterable[RobotSpec]) -> None:
    """Add the cameras of robots besides those of their assets; on the robot's root where there is no such link."""
    for robot in robots:
        prefix = robot_prefix(robot.name)
        for camera in robot.cameras:
            link, _, _ = camera.path.rpartition('/')
            body = spec.body(prefix + link.rpartition('/')[2]) or next(
                body for body in spec.bodies if body.name.startswith(prefix.rstrip('/'))
            )
            carrier = spec.worldbody if camera.mount == 'env' else body
            added = carrier.add_camera(name=prefix + camera.path, pos=camera.position, quat=camera.orientation)
            added.fovy = camera.fovy
            if camera.mount == 'follow':
                added.mode = mujoco.mjtCamLight.mjCAMLIGHT_TRACK
