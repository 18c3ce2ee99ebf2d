"""Renders a moment of an episode of each task of the suites, as their scripted experts carry them out.

    MUJOCO_GL=egl python tools/make_suite_pictures.py        writes docs/images/tabletop.png and homes.png

Needs Pillow, which comes with `internutopia3[cli]`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia.evaluation.suites import Suite
from internutopia_extension import import_extensions
from internutopia_extension.suites import homes, tabletop

IMAGES = Path(__file__).resolve().parent.parent / 'docs' / 'images'
GAP, SMOOTHING = 6, 2


@dataclass(frozen=True)
class Moments:
    """What is shown of a suite.

    Attributes:
        suite: the suite.
        size: width and height of each image [pixels].
        columns: number of images in a row.
        camera: where it stands, and what it looks at [m].
        moments: number of the episode of each task, and the steps after which it is shown.
    """

    suite: Suite
    size: tuple[int, int]
    columns: int
    camera: tuple[tuple[float, float, float], tuple[float, float, float]]
    moments: Mapping[str, tuple[int, int]]


PICTURES = {
    'tabletop': Moments(
        tabletop.SUITE,
        (320, 240),
        4,
        ((1.05, -0.62, 0.98), (0.45, 0.0, 0.47)),
        {
            'pick_and_place': (0, 52),
            'stack': (1, 62),
            'slide': (2, 45),
            'drawer': (0, 40),
            'door': (1, 44),
            'press_button': (0, 30),
            'insert_peg': (0, 68),
            'sort': (0, 300),
        },
    ),
    'homes': Moments(
        homes.SUITE,
        (430, 300),
        3,
        ((0.0, -2.6, 7.2), (0.0, 0.05, 0.0)),
        {'go_to': (0, 77), 'fetch': (1, 380), 'open_drawer': (0, 205)},
    ),
}


def moment(shown: Moments, name: str) -> Image.Image:
    """Return the image of a task."""
    number, steps = shown.moments[name]
    suite, (width, height) = shown.suite, shown.size
    task = suite.task_configs([name], episodes=number + 1)[number]
    act = suite.expert(task)
    config = Config(simulator=suite.simulator(None), task_configs=[task], metrics_save_path='none')
    with closing(Env(config)) as env:
        obs, _ = env.reset()
        for _ in range(steps):
            obs, _, (ended,), _, _ = env.step([{suite.arm.robot: act(obs[0][suite.arm.robot])}])
            if ended:
                break
        frame = Image.fromarray(np.asarray(env.render(shown.camera, (SMOOTHING * width, SMOOTHING * height))))
    return frame.resize((width, height), Image.Resampling.LANCZOS)


def main() -> None:
    """Run the episodes and write the images that are named, or all."""
    import_extensions()
    for file in sys.argv[1:] or PICTURES:
        shown = PICTURES[file]
        columns, (width, height) = shown.columns, shown.size
        rows = -(-len(shown.moments) // columns)
        picture = Image.new('RGB', (columns * (width + GAP) - GAP, rows * (height + GAP) - GAP), 'white')
        for index, name in enumerate(shown.moments):
            picture.paste(moment(shown, name), (index % columns * (width + GAP), index // columns * (height + GAP)))
        path = IMAGES / f'{file}.png'
        picture.quantize(128, kmeans=2).save(path, optimize=True)
        print(f'{path}: {path.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()
