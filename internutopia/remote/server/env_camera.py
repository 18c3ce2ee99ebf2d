"""Camera of one env, for the page: beside its robot, which it follows, above it, or one of the cameras in the env.

| camera | where it is |
|---|---|
| `'follow'` | beside the robot that learns |
| `'top'` | above it, looking down |
| a name in `camera_names` | where that camera is |
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.render.camera import CameraPose, Frame, Intrinsics, RenderRequest, half_angle
from internutopia.core.util import did_you_mean
from internutopia.core.util.arrays import to_host
from internutopia.core.util.rotations import quat_to_matrix
from internutopia.rl.batched_env import BatchedRLEnv
from internutopia.rl.training.playback import reach

_FOVY = 45.0  # degrees
_NEAREST, _FARTHEST = 0.8, 4.5  # m, from the robot
_ARMS = {  # directions from the robot to the camera
    'follow': np.array([-0.55, -0.75, 0.4]),
    'top': np.array([0.0, 0.0, 1.0]),
}


def camera_names(core: BatchedRLEnv, env_id: int) -> list[str]:
    """Names of the cameras in an env that holds an episode: `robots/<robot>/...` and `scene/...`."""
    world: Any = core.runner.world  # the contract of worlds lists no cameras
    return list(world.scene(env_id).cameras)


def env_picture(core: BatchedRLEnv, env_id: int, camera: str, size: tuple[int, int]) -> NDArray[np.uint8]:
    """What a camera of an env sees, RGB `(height, width, 3)`; `size` is width and height [pixels].

    Raises:
        ValueError: the env runs no episode, or there is no such camera.
        NoOpenGLError: nothing can be rendered here.
    """
    if core.episode_ids[env_id] < 0:
        raise ValueError(f'env {env_id} runs no episode')
    frame = Frame.blank(size, ['rgba'])
    core.runner.world.render([RenderRequest(env_id, _pose(core, env_id, camera, size), frame)])
    assert frame.rgba is not None
    return frame.rgba[..., :3]


def _pose(core: BatchedRLEnv, env_id: int, camera: str, size: tuple[int, int]) -> CameraPose:
    """The camera, env frame."""
    world: Any = core.runner.world
    if camera in _ARMS:
        base = to_host(core.state.base_position[env_id]).astype(float)
        distance = np.clip(4.0 * reach(world.model(env_id), world.data(env_id), base), _NEAREST, _FARTHEST)
        arm = _ARMS[camera] * distance
        return CameraPose.looking_at(base, base + arm, Intrinsics.of_height(half_angle(_FOVY), size))
    names = camera_names(core, env_id)
    if camera not in names:
        raise ValueError(f'env {env_id} has no camera {camera!r}; {did_you_mean(camera, [*_ARMS, *names])}')
    owner, _, path = camera.partition('/')
    robot, path = path.split('/', 1) if owner == 'robots' else (None, path)
    view = world.camera(robot, path, env_id)
    position, orientation = (to_host(values)[env_id].astype(float) for values in view.get_poses())
    return CameraPose(position, quat_to_matrix(orientation), view.intrinsics(env_id, size))


def env_at(core: BatchedRLEnv, x: float, y: float, size: tuple[int, int]) -> int:
    """The env that stands where a point of the picture of all envs shows the floor.

    `x` and `y` go from 0, left and top, to 1; `size` is the picture's width and height [pixels].
    """
    runner = core.runner
    pose = runner.camera_pose(None, size)
    lens = pose.intrinsics
    ray = pose.rotation @ [(2.0 * x - 1.0) * lens.half_width, (1.0 - 2.0 * y) * lens.half_height, -1.0]
    floor = pose.position - ray * (pose.position[2] / min(ray[2], -1e-6))  # the sky is far ahead
    return int(np.linalg.norm(runner.world.env_origins[:, :2] - floor[:2], axis=-1).argmin())
