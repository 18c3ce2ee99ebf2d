"""Camera of one env, for the page: one of `internutopia.core.runner.env_cameras`, chosen by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.env_cameras import EnvCameras
from internutopia.rendering.camera import Frame, RenderRequest
from internutopia.rl.batched_env import BatchedRLEnv


def camera_names(core: BatchedRLEnv, env_id: int) -> list[str]:
    """Return the names of the cameras in an env that holds an episode: `robots/<robot>/...` and `scene/...`."""
    world: Any = core.runner.world  # the contract of worlds lists no cameras
    return list(world.scene(env_id).cameras)


def env_picture(core: BatchedRLEnv, env_id: int, camera: str, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Render a camera of an env, RGB `(height, width, 3)`; `size` is width and height [pixels].

    Raises:
        ValueError: the env runs no episode, or there is no such camera.
        NoOpenGLError: nothing can be rendered here.
    """
    if core.episode_ids[env_id] < 0:
        raise ValueError(f'env {env_id} runs no episode')
    cameras, frame = EnvCameras(core.runner, camera, size, core.learning.robot), Frame.blank(size, ['rgba'])
    core.runner.world.render([RenderRequest(env_id, cameras.pose(env_id), frame)])
    assert frame.rgba is not None
    return frame.rgba[..., :3]


def env_at(core: BatchedRLEnv, x: float, y: float, size: tuple[int, int]) -> int:
    """Return the env in whose cell a point of the picture of all envs shows the floor.

    `x` and `y` go from 0, left and top, to 1; `size` is the picture's width and height [pixels].
    """
    runner = core.runner
    pose = runner.camera_pose(None, size)
    lens = pose.intrinsics
    ray = pose.rotation @ [(2.0 * x - 1.0) * lens.half_width, (1.0 - 2.0 * y) * lens.half_height, -1.0]
    floor = pose.position - ray * (pose.position[2] / min(ray[2], -1e-6))  # the sky is far ahead
    return int(np.linalg.norm(runner.world.env_origins[:, :2] - floor[:2], axis=-1).argmin())
