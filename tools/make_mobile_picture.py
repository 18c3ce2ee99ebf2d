"""Renders four moments of a mobile manipulator that takes a cube from one place to another.

    MUJOCO_GL=egl python tools/make_mobile_picture.py        writes docs/images/mobile_manipulation.png

Needs Pillow, which comes with `internutopia3[cli]`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg, StaticCubeCfg
from internutopia_extension.configs.robots import ridgeback_franka
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'mobile_manipulation.png'
WIDTH, HEIGHT, GAP, SMOOTHING = 480, 360, 6, 2
CAMERA = ((1.2, -2.4, 1.7), (1.2, 0.5, 0.4))  # where it stands, and what it looks at [m]
DOWN = (0.0, 1.0, 0.0, 0.0)
TOP = 0.45  # m, of the tables
TABLES = {'first': (1.6, 0.0), 'second': (2.2, 1.2)}  # m
FIRST, SECOND = (0.85, 0.0, 0.0), (1.45, 1.2, 0.0)  # m, of the base before each
TAKEN, PUT = (1.5, 0.0, TOP + 0.03), (2.1, 1.2, TOP + 0.035)  # m, of the gripper
# place of the base, target of the arm, fingers, steps of 1/60 s, and whether that is shown in the end
PLAN: list[tuple[Any, Any, str, int, bool]] = [
    (FIRST, None, 'open', 60, True),
    (FIRST, None, 'open', 240, False),
    (FIRST, (*TAKEN[:2], 0.7), 'open', 90, False),
    (FIRST, TAKEN, 'open', 60, False),
    (FIRST, TAKEN, 'close', 30, True),
    (FIRST, (*TAKEN[:2], 0.8), 'close', 60, False),
    ((0.5, 0.6, 0.0), None, 'close', 330, True),
    (SECOND, None, 'close', 400, False),
    (SECOND, (*PUT[:2], 0.7), 'close', 120, False),
    (SECOND, PUT, 'close', 60, False),
    (SECOND, PUT, 'open', 30, False),
    (SECOND, (*PUT[:2], 0.65), 'open', 60, True),
]


def main() -> None:
    """Run the robot and write the image."""
    import_extensions()
    controllers = [ridgeback_franka.move_to_point_cfg, ridgeback_franka.arm_ik_cfg, ridgeback_franka.gripper_cfg]
    robot = ridgeback_franka.RidgebackFrankaRobotCfg(name='robot', controllers=controllers)
    tables = [
        StaticCubeCfg(
            name=name, prim_path=f'/{name}', position=(*place, TOP / 2), scale=(0.5, 0.7, TOP), color=(0.62, 0.5, 0.38)
        )
        for name, place in TABLES.items()
    ]
    cube = DynamicCubeCfg(
        name='cube',
        prim_path='/cube',
        position=TAKEN,
        scale=(0.05, 0.05, 0.06),
        mass=0.1,
        color=(0.85, 0.3, 0.25),
    )
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot], objects=[*tables, cube])
    env = Env(
        Config(simulator=SimConfig(physics_dt=1 / 240, substeps=4), task_configs=[task], metrics_save_path='none')
    )
    env.reset()
    frames = []
    for place, target, fingers, steps, shown in PLAN:
        arm = [target, None if target is None else DOWN]
        action = {'move_to_point': [place], 'arm_ik_controller': arm, 'gripper_controller': [fingers]}
        for _ in range(steps):
            env.step([{'robot': action}])
        if shown:
            frames.append(Image.fromarray(env.render(CAMERA, (SMOOTHING * WIDTH, SMOOTHING * HEIGHT))))
    env.close()
    picture = Image.new('RGB', (2 * WIDTH + GAP, 2 * HEIGHT + GAP), 'white')
    for index, frame in enumerate(frames):
        place = (index % 2 * (WIDTH + GAP), index // 2 * (HEIGHT + GAP))
        picture.paste(frame.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS), place)
    picture.save(PICTURE, optimize=True)
    print(f'{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
