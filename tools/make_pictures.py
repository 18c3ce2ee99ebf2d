"""Renders the moving image of the README: four envs of one run, each with its own scene.

    MUJOCO_GL=egl python tools/make_pictures.py        writes docs/images/envs.webp

Needs Pillow, which comes with `internutopia3[cli]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
from PIL import Image

from internutopia.config import Config, RobotCfg, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots import aliengo, franka, h1, jetbot
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'envs.webp'
WIDTH, HEIGHT, GAP = 440, 280, 6  # pixels of one env's image, and between them
SMOOTHING = 2  # rendered this many times as large
STEPS, EVERY, START = 360, 5, 40  # env steps of 1/60 s, steps of a frame, and those that are not shown
DOWN = (0.0, 1.0, 0.0, 0.0)  # a gripper that points to the floor


@dataclass(frozen=True)
class Layout:
    """Where an env is looked at from, and where its robots are [deg, m]."""

    azimuth: float
    elevation: float
    distance: float
    lookat: tuple[float, float, float]
    humanoid: tuple[float, float]
    arm: tuple[float, float]
    dog: tuple[tuple[float, float], ...]  # its path
    driver: tuple[tuple[float, float], ...]


ENVS = {
    'scenes/warehouse.xml': Layout(
        azimuth=100.0,
        elevation=-21.0,
        distance=4.8,
        lookat=(0.5, 0.2, 0.5),
        humanoid=(-1.1, 0.2),
        arm=(0.4, -1.25),
        dog=((-0.9, 1.2), (2.6, 1.2)),
        driver=((0.4, -0.4), (2.2, -0.3)),
    ),
    'scenes/rooms.xml': Layout(
        azimuth=60.0,
        elevation=-50.0,
        distance=5.6,
        lookat=(0.0, -0.4, 0.3),
        humanoid=(-2.0, -1.0),
        arm=(-0.6, 0.75),
        dog=((-1.2, -0.4), (0.2, -0.5), (3.0, -0.5)),
        driver=((0.9, 0.2), (0.7, 1.6)),
    ),
    'scenes/obstacles.usda': Layout(
        azimuth=130.0,
        elevation=-26.0,
        distance=5.0,
        lookat=(0.3, 0.0, 0.4),
        humanoid=(-1.4, 0.1),
        arm=(0.2, -1.3),
        dog=((-1.0, 1.0), (1.5, 1.1)),
        driver=((0.4, -0.5), (1.6, -0.4)),
    ),
    'scenes/empty.xml': Layout(
        azimuth=130.0,
        elevation=-22.0,
        distance=4.2,
        lookat=(0.3, 0.0, 0.45),
        humanoid=(-1.4, 0.1),
        arm=(0.3, -1.3),
        dog=((-1.0, 1.0), (1.5, 1.1)),
        driver=((0.5, -0.4), (1.7, -0.4)),
    ),
}
CUBE, PLACE = (0.45, -0.2, 0.03), (0.45, 0.2)  # seen from the arm [m]


def task(scene: str, layout: Layout) -> SingleInferenceTaskCfg:
    """A humanoid in the middle of a scene; a dog, a Jetbot and an arm with a cube around it."""
    x, y = layout.arm
    robots: list[RobotCfg] = [
        h1.H1RobotCfg(position=(*layout.humanoid, 0.98), controllers=[h1.move_by_speed_cfg]),
        aliengo.AliengoRobotCfg(
            position=(*layout.dog[0], 0.4), controllers=[aliengo.move_by_speed_cfg, aliengo.move_along_path_cfg]
        ),
        jetbot.JetbotRobotCfg(
            position=(*layout.driver[0], 0.03), controllers=[jetbot.move_along_path_cfg.update(rotation_speed=4.0)]
        ),
        franka.FrankaRobotCfg(position=(x, y, 0.0), controllers=[franka.arm_ik_cfg, franka.gripper_cfg]),
    ]
    cube = DynamicCubeCfg(
        name='cube',
        prim_path='/cube',
        position=(x + CUBE[0], y + CUBE[1], CUBE[2]),
        scale=(0.05, 0.05, 0.06),
        mass=0.1,
        color=(0.85, 0.3, 0.25),
    )
    return SingleInferenceTaskCfg(scene_asset_path=scene, robots=robots, objects=[cube])


def arm_actions(layout: Layout) -> Iterator[dict[str, Any]]:
    """What the arm does in each step: it takes the cube to the other side."""
    x, y = layout.arm
    cube, place = (x + CUBE[0], y + CUBE[1]), (x + PLACE[0], y + PLACE[1])
    above, there = (*cube, 0.25), (*place, 0.25)
    plan = [
        (above, 'open', 50),
        ((*cube, CUBE[2]), 'open', 50),
        ((*cube, CUBE[2]), 'close', 20),
        (above, 'close', 40),
        (there, 'close', 60),
        ((*place, 0.035), 'close', 45),
        ((*place, 0.035), 'open', 20),
        (there, 'open', STEPS),
    ]
    for point, fingers, steps in plan:
        for _ in range(steps):
            yield {franka.arm_ik_cfg.name: [point, DOWN], franka.gripper_cfg.name: [fingers]}


class EnvCamera:
    """A camera that looks at one env."""

    def __init__(self, world: MujocoWorld, env_id: int, layout: Layout):
        self.world, self.env_id = world, env_id
        model = world.model(env_id)
        model.vis.global_.offwidth, model.vis.global_.offheight = SMOOTHING * WIDTH, SMOOTHING * HEIGHT
        self.renderer = mujoco.Renderer(model, SMOOTHING * HEIGHT, SMOOTHING * WIDTH)
        self.camera = mujoco.MjvCamera()
        self.camera.azimuth, self.camera.elevation = layout.azimuth, layout.elevation
        self.camera.distance, self.camera.lookat = layout.distance, layout.lookat

    def render(self) -> Image.Image:
        """What it sees now."""
        self.renderer.update_scene(self.world.data(self.env_id), self.camera)
        return Image.fromarray(self.renderer.render()).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def frame(cameras: list[EnvCamera]) -> Image.Image:
    """All envs in one image."""
    picture = Image.new('RGB', (2 * WIDTH + GAP, 2 * HEIGHT + GAP), 'white')
    for env_id, camera in enumerate(cameras):
        picture.paste(camera.render(), (env_id % 2 * (WIDTH + GAP), env_id // 2 * (HEIGHT + GAP)))
    return picture


def main() -> None:
    """Run the envs and write the image."""
    import_extensions()
    simulator = SimConfig(physics_dt=1 / 240, substeps=4)
    tasks: list[TaskCfg] = [task(scene, layout) for scene, layout in ENVS.items()]
    env = Env(Config(simulator=simulator, env_num=len(ENVS), task_configs=tasks, metrics_save_path='none'))
    env.reset()
    world = env.runner.world
    assert isinstance(world, MujocoWorld)
    cameras = [EnvCamera(world, env_id, layout) for env_id, layout in enumerate(ENVS.values())]
    frames = []
    arms = zip(*(arm_actions(layout) for layout in ENVS.values()), strict=True)
    for step, moves in zip(range(STEPS), arms, strict=False):
        env.step(
            [
                {
                    'h1': {'move_by_speed': [0.45, 0.0, 0.0]},
                    'aliengo': {'move_along_path': [[(*point, 0.0) for point in layout.dog[1:]]]},
                    'jetbot': {'move_along_path': [[(*point, 0.0) for point in layout.driver[1:]]]},
                    'franka': arm,
                }
                for layout, arm in zip(ENVS.values(), moves, strict=True)
            ]
        )
        if step >= START and step % EVERY == 0:
            frames.append(frame(cameras))
    env.close()
    PICTURE.parent.mkdir(exist_ok=True)
    duration = round(1000 * EVERY / 60)  # ms
    frames[0].save(PICTURE, save_all=True, append_images=frames[1:], duration=duration, loop=0, quality=70, method=6)
    print(f'{PICTURE}: {len(frames)} frames, {PICTURE.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
