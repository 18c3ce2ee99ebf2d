"""Renders a film of the walking robots: they stand, walk, turn and stop, on MuJoCo above and on PhysX below.

    MUJOCO_GL=egl python tools/make_walker_film.py        writes docs/images/walkers.webp

Needs Pillow, and PhysX (`make .venv/.physx`).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw

from internutopia.config import Config, RobotCfg, SimConfig
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.walkers import WALKERS

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'walkers.webp'
WIDTH, HEIGHT, SMOOTHING = 640, 240, 2  # pixels of an engine's image; rendered this many times as large
ROBOTS = 'h1', 'h1_with_hand', 'g1', 'gr1', 'aliengo', 'go2'
APART = 0.8  # m, between them
PLAN = [  # forward [m/s], to the left [m/s], turn [rad/s], seconds
    (0.0, 0.0, 0.0, 2.0),
    (0.8, 0.0, 0.0, 3.0),
    (0.0, 0.0, 0.0, 1.5),
    (0.0, 0.0, 0.8, 2.0),
    (0.0, 0.0, -0.8, 2.0),
    (0.0, 0.0, 0.0, 1.5),
]
EVERY = 5  # env steps of 1/60 s in a frame


def walker(name: str, y: float) -> RobotCfg:
    """Return a robot that walks by its policy, beside the others."""
    own = WALKERS[name]
    walking = import_module(type(own.config).__module__).move_by_speed_cfg
    return own.config.update(name=name, prim_path=f'/{name}', position=(0.0, y, own.root_height), controllers=[walking])


def film(backend: Literal['mujoco', 'physx']) -> list[Image.Image]:
    """Return frames of the robots on an engine; the camera goes ahead of them."""
    robots = [walker(name, -APART * k) for k, name in enumerate(ROBOTS)]
    env = Env(
        Config(
            simulator=SimConfig(physics_dt='1/240', substeps=4, backend=backend),
            task_configs=[SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=robots)],
            metrics_save_path='none',
        )
    )
    env.reset()
    frames, steps, middle = [], 0, -APART * (len(ROBOTS) - 1) / 2
    for *command, seconds in PLAN:
        for _ in range(round(60 * seconds)):
            (obs,), *_ = env.step([{name: {'move_by_speed': command} for name in ROBOTS}])
            steps += 1
            if steps % EVERY == 0:
                x = float(np.mean([obs[name]['position'][0] for name in ROBOTS]))
                view = (x + 2.9, middle - 1.6, 1.3), (x, middle - 0.1, 0.6)
                frame = Image.fromarray(env.render(view, (SMOOTHING * WIDTH, SMOOTHING * HEIGHT)))
                frame = frame.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
                ImageDraw.Draw(frame).text((6, 4), {'mujoco': 'MuJoCo', 'physx': 'PhysX'}[backend], fill='black')
                frames.append(frame)
    env.close()
    return frames


def main() -> None:
    """Run both engines and write the film."""
    import_extensions()
    frames = []
    for above, below in zip(film('mujoco'), film('physx'), strict=True):
        frames.append(Image.new('RGB', (WIDTH, 2 * HEIGHT), 'white'))
        frames[-1].paste(above)
        frames[-1].paste(below, (0, HEIGHT))
    duration = round(1000 * EVERY / 60)  # ms
    frames[0].save(PICTURE, save_all=True, append_images=frames[1:], duration=duration, loop=0, quality=55, method=6)
    print(f'{PICTURE}: {len(frames)} frames, {PICTURE.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
