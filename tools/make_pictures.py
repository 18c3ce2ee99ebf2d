"""Renders the picture of the README: four envs of one run, each in a scene of its own.

    MUJOCO_GL=egl python tools/make_pictures.py        writes docs/images/envs.png

An H1 walks and three Jetbots drive in each env. Needs Pillow, which comes with `internutopia[cli]`.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
from PIL import Image

from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots import h1, jetbot
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'envs.png'
WIDTH, HEIGHT, GAP = 570, 360, 8  # pixels of one env's picture, and between them
SMOOTHING = 2  # rendered this many times as large

# Looked at from: azimuth [deg], elevation [deg], distance [m], point looked at [m]
View = tuple[float, float, float, tuple[float, float, float]]
VIEWS: dict[str, View] = {
    'scenes/warehouse.xml': (100.0, -22.0, 5.2, (0.2, 0.4, 0.7)),
    'scenes/rooms.xml': (60.0, -56.0, 6.6, (-0.1, -0.2, 0.4)),
    'scenes/obstacles.usda': (130.0, -26.0, 5.6, (0.2, 0.2, 0.5)),
    'scenes/empty.xml': (130.0, -22.0, 4.6, (0.3, 0.1, 0.55)),
}
JETBOTS = {  # start and goal, (x, y) [m]
    'jetbot_0': ((0.7, 0.9), (2.0, 1.0)),
    'jetbot_1': ((0.6, -0.8), (1.6, -1.2)),
    'jetbot_2': ((-0.7, -0.9), (-0.1, -1.3)),
}
STEPS = 60


def task(scene: str) -> FiniteStepTaskCfg:
    """An H1 in the middle of a scene and the Jetbots around it."""
    follow = jetbot.move_along_path_cfg.update(rotation_speed=4.0)
    jetbots = [
        jetbot.JetbotRobotCfg(name=name, prim_path=f'/{name}', position=(*start, 0.03), controllers=[follow])
        for name, (start, _) in JETBOTS.items()
    ]
    humanoid = h1.H1RobotCfg(position=(0.0, 0.0, 0.98), controllers=[h1.move_by_speed_cfg])
    return FiniteStepTaskCfg(scene_asset_path=scene, robots=[humanoid, *jetbots], max_steps=STEPS + 1)


def render(world: MujocoWorld, env_id: int, view: View) -> Image.Image:
    """What a camera sees of one env."""
    model = world.model(env_id)
    model.vis.global_.offwidth, model.vis.global_.offheight = SMOOTHING * WIDTH, SMOOTHING * HEIGHT
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance, camera.lookat = view
    with mujoco.Renderer(model, SMOOTHING * HEIGHT, SMOOTHING * WIDTH) as renderer:
        renderer.update_scene(world.data(env_id), camera)
        return Image.fromarray(renderer.render()).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def main() -> None:
    """Run the envs and write the picture."""
    import_extensions()
    env = Env(
        Config(
            simulator=SimConfig(physics_dt=1 / 240, substeps=4),
            env_num=len(VIEWS),
            task_configs=[task(scene) for scene in VIEWS],
            metrics_save_path='none',
        )
    )
    env.reset()
    paths = {name: {'move_along_path': [[(*goal, 0.0)]]} for name, (_, goal) in JETBOTS.items()}
    for _ in range(STEPS):
        env.step([{'h1': {'move_by_speed': [0.6, 0.0, 0.0]}, **paths}] * env.env_num)
    world = env.runner.world
    assert isinstance(world, MujocoWorld)
    picture = Image.new('RGB', (2 * WIDTH + GAP, 2 * HEIGHT + GAP), 'white')
    for env_id, view in enumerate(VIEWS.values()):
        corner = (env_id % 2 * (WIDTH + GAP), env_id // 2 * (HEIGHT + GAP))
        picture.paste(render(world, env_id, view), corner)
    env.close()
    PICTURE.parent.mkdir(exist_ok=True)
    picture.save(PICTURE, optimize=True)
    print(f'{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
