"""Renders images of single pages: scenes, sensors, colliders, learning, cameras, runs, and the four doors.

    MUJOCO_GL=egl python tools/make_page_pictures.py        writes docs/images/page_*.png and door_*.png

Needs Pillow, which comes with `internutopia3[cli]`.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from internutopia import Config, Env, SimConfig, TaskCfg
from internutopia.cli.run_file import read_run_file
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots import jetbot
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

DOCS = Path(__file__).resolve().parent.parent / 'docs'
IMAGES = DOCS / 'images'
SIZE = 400, 300  # pixels of a panel
DOOR = 480, 300
SCENES = ('warehouse.xml', 'apartment.usda', 'rooms.xml', 'obstacles.usda', 'terrain.xml', 'course.xml')
Pixels = NDArray[np.uint8]


def tiled(panels: dict[str, Pixels], columns: int) -> Image.Image:
    """Panels with their names, row by row."""
    height, width = next(iter(panels.values())).shape[:2]
    rows = -(-len(panels) // columns)
    picture = Image.new('RGB', (columns * (width + 4) - 4, rows * (height + 4) - 4), 'white')
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(15)
    for index, (name, pixels) in enumerate(panels.items()):
        left, top = index % columns * (width + 4), index // columns * (height + 4)
        picture.paste(Image.fromarray(pixels), (left, top))
        box = pen.textbbox((left + 8, top + 6), name, font)
        pen.rectangle((box[0] - 4, box[1] - 3, box[2] + 4, box[3] + 3), 'black')
        pen.text((left + 8, top + 6), name, 'white', font)
    return picture


def scene_of(asset: str) -> TaskCfg:
    """A task with nothing but a scene, or a robot's file."""
    return TaskCfg(type='SingleInferenceTask', scene_asset_path=asset)


def rendered(asset: str, size: tuple[int, int] = SIZE) -> Pixels:
    """What `internutopia show` renders of a file."""
    simulator = SimConfig(render_quality='full')
    env = Env(Config(simulator=simulator, task_configs=[scene_of(asset)], metrics_save_path='none'))
    env.reset()
    pixels = env.render(None, size)
    env.close()
    return pixels


def demo() -> Pixels:
    """The envs of `internutopia demo` at the start."""
    env = Env(read_run_file(str(DOCS.parent / 'configs' / 'demo.yaml')).config)
    env.reset()
    pixels = env.render(None, (800, 600))
    env.close()
    return pixels


def sensors() -> dict[str, Pixels]:
    """Colours, depth and labels of one camera in the apartment."""
    camera = jetbot.camera_cfg.update(
        resolution=SIZE, depth=True, semantic_segmentation=True, instance_segmentation=True
    )
    robot = jetbot.JetbotRobotCfg(
        position=(-1.2, -2.2, 0.03), orientation=(0.8, 0.0, 0.0, 0.6), sensors=[camera], prim_path='/jetbot'
    )
    cube = DynamicCubeCfg(name='cube', prim_path='/cube', position=(-0.9, -1.0, 0.1), scale=(0.2, 0.2, 0.2))
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/apartment.usda', robots=[robot], objects=[cube])
    env = Env(Config(simulator=SimConfig(render_quality='full'), task_configs=[task], metrics_save_path='none'))
    [obs], _ = env.reset()
    seen = obs['jetbot']['sensors']['camera']
    env.close()
    depth = np.clip(seen['depth'] / 6.0, 0.0, 1.0)
    palette = np.random.default_rng(5).integers(60, 235, (256, 3)).astype(np.uint8)
    palette[:2] = [[40, 40, 44], [110, 110, 116]]
    labels = {kind: palette[seen[f'{kind}_segmentation']['data'] % 256] for kind in ('semantic', 'instance')}
    grey = np.repeat((255 * (1.0 - depth)).astype(np.uint8)[..., None], 3, axis=2)
    return {'rgba': seen['rgba'][..., :3], 'depth': grey, **{f'{kind}_segmentation': x for kind, x in labels.items()}}


def colliders() -> dict[str, Pixels]:
    """A cupboard of the apartment as it is rendered, and its colliders."""
    env = Env(Config(task_configs=[scene_of('scenes/apartment.usda')], metrics_save_path='none'))
    env.reset()
    world: Any = env.runner.world
    model, data = world.scene(0).model, world.data(0)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance, camera.azimuth, camera.elevation = (0.0, 0.0, 0.5), 11.0, 60.0, -38.0
    panels = {}
    palette = np.random.default_rng(3).uniform(0.25, 0.95, (model.ngeom, 3))
    for name, groups in (('visual geometry', (0, 1, 2)), ('colliders', (0, 3))):
        option = mujoco.MjvOption()
        option.geomgroup[:] = [group in groups for group in range(6)]
        if name == 'colliders':
            model.geom_rgba[:, :3], model.geom_rgba[:, 3], model.geom_matid[:] = palette, 1.0, -1
            hidden = (model.geom_contype == 0) & (model.geom_conaffinity == 0)
            model.geom_rgba[hidden, 3] = 0.0
        with mujoco.Renderer(model, SIZE[1], SIZE[0]) as renderer:
            renderer.update_scene(data, camera, option)
            panels[name] = renderer.render().copy()
    env.close()
    return panels


def learning() -> dict[str, Pixels]:
    """Four tasks with their goals and commands."""
    tasks = {'Jetbot-Goal': None, 'Franka-Reach': None, 'H1-Velocity': None, 'PushT': 'above'}
    return {task: view_of(task, camera) for task, camera in tasks.items()}


def view_of(task: str, camera: Any, size: tuple[int, int] = SIZE, steps: int = 4, mode: str = 'rgb_array') -> Any:
    """An image of a task's env after some steps."""
    env: Any = gymnasium.make(
        f'internutopia:InternUtopia/{task}-v0', render_mode=mode, width=size[0], height=size[1], camera=camera
    )
    env.reset(seed=2)
    for _ in range(steps):
        env.step(np.zeros(env.action_space.shape, np.float32))
    image = env.render()
    env.close()
    return image


def cameras() -> dict[str, Pixels]:
    """One env through several cameras."""
    task = 'H1-PointNav'
    panels = {repr(camera): view_of(task, camera) for camera in ('follow', 'side', 'top')}
    depth = np.clip(view_of(task, None, mode='depth_array') / 8.0, 0.0, 1.0)
    return {**panels, 'depth_array': np.repeat((255 * (1.0 - depth)).astype(np.uint8)[..., None], 3, axis=2)}


def lift() -> Pixels:
    """The lift that docs/extensions.md builds."""
    found = re.search(r'write_text\(\"\"\"(.*?)\"\"\"\)', (DOCS / 'extensions.md').read_text(), re.DOTALL)
    assert found is not None
    with TemporaryDirectory() as folder:
        file = Path(folder) / 'lift.xml'
        file.write_text(found[1])
        return rendered(str(file))


def door(pixels: Pixels) -> Image.Image:
    """An image cut to the shape of a door."""
    image = Image.fromarray(pixels)
    scale = max(DOOR[0] / image.width, DOOR[1] / image.height)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)
    left, top = (image.width - DOOR[0]) // 2, (image.height - DOOR[1]) // 2
    return image.crop((left, top, left + DOOR[0], top + DOOR[1]))


def main() -> None:
    """Write all images."""
    import_extensions()
    pictures = {
        'page_scenes': tiled({f'scenes/{name}': rendered(f'scenes/{name}') for name in SCENES}, 3),
        'page_sensors': tiled(sensors(), 2),
        'page_colliders': tiled(colliders(), 2),
        'page_learning': tiled(learning(), 2),
        'page_cameras': tiled(cameras(), 2),
        'page_demo': Image.fromarray(demo()),
        'page_lift': Image.fromarray(lift()),
        'door_simulate': door(rendered('scenes/warehouse.xml', (960, 600))),
        'door_learn': door(view_of('H1-Velocity', None, (960, 600), steps=4)),
        'door_navigate': door(np.asarray(Image.open(IMAGES / 'map_apartment.png').convert('RGB'))),
        'door_evaluate': door(np.asarray(Image.open(IMAGES / 'tabletop.png').convert('RGB').crop((324, 0, 648, 242)))),
    }
    for name, picture in pictures.items():
        picture.save(IMAGES / f'{name}.png', optimize=True)


if __name__ == '__main__':
    main()
