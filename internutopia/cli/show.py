"""Command `internutopia show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.cli.command import guarded
from internutopia.cli.run_file import read_run_file
from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.core.runner.grid import overview_pose
from internutopia.core.vec_env import Env
from internutopia.util.install import install_hint

_RUN_FILES = ('.yaml', '.yml')
_FAR_OFF = 50.0  # m: what is larger is background


def show(source: str, out: Path | None, resolution: tuple[int, int]) -> int:
    """Write a picture of a scene, or of a run at its start; returns the exit code.

    Args:
        source: scene or robot file (USD, URDF, MJCF), found like `scene_asset_path`, or run file.
        out: the picture; None means `out/<name of the file>.png`.
        resolution: width and height [pixels].
    """
    file = out or Path('out') / f'{Path(source).stem}.png'

    def start() -> int:
        try:
            from PIL import Image
        except ImportError as error:
            raise ImportError(f'a picture needs pillow ({error}): {install_hint("cli")}') from error
        is_run = Path(source).suffix in _RUN_FILES
        env = Env(read_run_file(source).config if is_run else _alone(source))
        try:
            env.reset()
            picture = env.render(None if is_run else _whole(env.runner.world, resolution), resolution)
        finally:
            env.close()
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(file)
        print(file)
        return 0

    return guarded(f'show {source}', start)


def _alone(scene: str) -> Config:
    """Return the config of a run with nothing but a scene."""
    task = TaskCfg(type='SingleInferenceTask', scene_asset_path=scene)
    return Config(simulator=SimConfig(render_quality='full'), task_configs=[task], metrics_save_path='none')


def _whole(world: Any, resolution: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return position and target of a camera that has all of env 0 in view."""
    model: mujoco.MjModel = world.model(0)
    data: mujoco.MjData = world.data(0)
    radius = model.geom_rbound[:, None]
    seen = (radius[:, 0] > 0) & (radius[:, 0] < _FAR_OFF)  # a plane without borders has none
    centres = data.geom_xpos[seen] if seen.any() else np.zeros((1, 3))
    reach = np.minimum(radius[seen], 1.0) if seen.any() else np.ones((1, 1))
    low, high = (centres - reach).min(axis=0), (centres + reach).max(axis=0)
    camera_pose = overview_pose(low, high, resolution)
    return camera_pose.position, 0.5 * (low + high)
