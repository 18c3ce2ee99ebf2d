"""Renders a moment of an episode of each task of `InternUtopia/Tabletop`, as the scripted expert carries it out.

    MUJOCO_GL=egl python tools/make_tabletop_picture.py        writes docs/images/tabletop.png

Needs Pillow, which comes with `internutopia3[cli]`.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
from PIL import Image

from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.suites.tabletop import SUITE

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'tabletop.png'
WIDTH, HEIGHT, GAP, SMOOTHING, COLUMNS = 320, 240, 6, 2, 4
CAMERA = ((1.05, -0.62, 0.98), (0.45, 0.0, 0.47))  # where it stands, and what it looks at [m]
MOMENTS = {  # number of the episode, and the steps after which it is shown
    'pick_and_place': (0, 52),
    'stack': (1, 62),
    'slide': (2, 45),
    'drawer': (0, 40),
    'door': (1, 44),
    'press_button': (0, 30),
    'insert_peg': (0, 68),
    'sort': (0, 300),
}


def moment(name: str) -> Image.Image:
    """Return the picture of a task."""
    number, steps = MOMENTS[name]
    task = SUITE.task_configs([name], episodes=number + 1)[number]
    act = SUITE.expert(task)
    config = Config(simulator=SUITE.simulator(None), task_configs=[task], metrics_save_path='none')
    with closing(Env(config)) as env:
        obs, _ = env.reset()
        for _ in range(steps):
            obs, *_ = env.step([{'franka': act(obs[0]['franka'])}])
        frame = Image.fromarray(np.asarray(env.render(CAMERA, (SMOOTHING * WIDTH, SMOOTHING * HEIGHT))))
    return frame.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def main() -> None:
    """Run the episodes and write the picture."""
    import_extensions()
    rows = -(-len(SUITE.tasks) // COLUMNS)
    picture = Image.new('RGB', (COLUMNS * (WIDTH + GAP) - GAP, rows * (HEIGHT + GAP) - GAP), 'white')
    for index, name in enumerate(SUITE.tasks):
        picture.paste(moment(name), (index % COLUMNS * (WIDTH + GAP), index // COLUMNS * (HEIGHT + GAP)))
    picture.quantize(128, kmeans=2).save(PICTURE, optimize=True)
    print(f'{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
