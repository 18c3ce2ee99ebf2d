"""Renders the image of the page on GRScenes: a generated home from above, and an H1 that walks in it.

    MUJOCO_GL=egl python -m tools.make_home_picture    writes docs/images/home.png

Making the colliders of the home takes some minutes the first time. Needs Pillow, which comes with `internutopia3[cli]`.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

from benchmarks.homes import Home, write_home
from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots import h1
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'home.png'
WIDTH, HEIGHT, GAP = 640, 480, 8  # pixels of one of the two images, and between them
SMOOTHING = 2  # the one from above is rendered this many times as large
STEPS = 60


def start(home: Home) -> Env:
    """An env in which an H1 has walked some steps in a home."""
    x, y, yaw = home.start
    turned = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
    robot = h1.H1RobotCfg(position=(x, y, 1.05), orientation=turned, controllers=[h1.move_by_speed_cfg])
    task = FiniteStepTaskCfg(scene_asset_path=str(home.navigation), robots=[robot], max_steps=STEPS + 1)
    simulator = SimConfig(physics_dt=1 / 240, substeps=4, render_quality='full')
    env = Env(Config(simulator=simulator, task_configs=[task], metrics_save_path='none'))
    env.reset()
    for _ in range(STEPS):
        env.step([{'h1': {'move_by_speed': [0.5, 0.0, 0.0]}}])
    return env


def behind(env: Env, home: Home) -> Image.Image:
    """What stands behind the robot, to its right, sees of it."""
    x, y, yaw = home.start
    ahead, left = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    eye, target = np.array([x, y]) - 1.8 * ahead + 0.9 * left, np.array([x, y]) + 0.4 * ahead
    return Image.fromarray(env.render(((*eye, 1.9), (*target, 0.8)), (WIDTH, HEIGHT)))


def above(env: Env, home: Home) -> Image.Image:
    """The home from above, without ceilings and what hangs from them."""
    world = env.runner.world
    assert isinstance(world, MujocoWorld)
    model = world.model(0)
    for geom in range(model.ngeom):
        if '/ceiling/' in (name := model.geom(geom).name) or '/chandelier/' in name:
            model.geom_rgba[geom, 3] = 0
    model.vis.global_.offwidth, model.vis.global_.offheight = SMOOTHING * WIDTH, SMOOTHING * HEIGHT
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation = 90, -75
    camera.lookat, camera.distance = (home.extent[0] / 2, home.extent[1] / 2, 0.0), 1.06 * home.extent[0]
    with mujoco.Renderer(model, SMOOTHING * HEIGHT, SMOOTHING * WIDTH, max_geom=2 * model.ngeom) as renderer:
        renderer.update_scene(world.data(0), camera)
        return Image.fromarray(renderer.render()).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def main() -> None:
    """Write a home, run an H1 in it, and write the image."""
    import_extensions()
    with tempfile.TemporaryDirectory() as folder:
        home = write_home(Path(folder) / 'home')
        env = start(home)
        picture = Image.new('RGB', (2 * WIDTH + GAP, HEIGHT), 'white')
        picture.paste(behind(env, home), (WIDTH + GAP, 0))
        picture.paste(above(env, home), (0, 0))
        env.close()
    picture.quantize(256, kmeans=3).save(PICTURE, optimize=True)
    print(f'{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
