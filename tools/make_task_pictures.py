"""Renders the gallery of tasks, what an env of each looks like, and what the policies that come with them do.

    MUJOCO_GL=egl python tools/make_task_pictures.py        writes docs/images/tasks.png and learned.png

Needs Pillow, which comes with `internutopia[cli]`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
from PIL import Image, ImageDraw

from internutopia.rl.training.loading import load_trained
from internutopia.rl.training.playback import play

IMAGES = Path(__file__).resolve().parent.parent / 'docs' / 'images'
WIDTH, HEIGHT, COLUMNS = 240, 180, 5  # pixels of a task's image
TASKS = (
    *('CartPole', 'Jetbot-Goal', 'H1-Stand', 'Franka-Reach', 'Franka-ReachBlock'),
    *('Franka-Lift', 'HalfCheetah', 'Hopper', 'Walker2d', 'Ant'),
    *('Humanoid', 'H1-Velocity', 'Aliengo-Velocity-Rough', 'Jetbot-PointNav', 'Aliengo-Navigation'),
    *('Franka-OpenDrawer', 'Franka-OpenDoor', 'PushT', 'Aliengo-GetUp', 'H1-Squat'),
)
CAMERAS = {'PushT': 'above'}
LEARNED = {  # policies, with the seconds of a strip, its camera and the seed of the episode
    'franka/open_drawer': (2.0, None, 0),
    'franka/open_door': (3.0, None, 0),
    'aliengo/get_up': (2.1, 'side', 7),
    'h1/squat': (4.0, 'side', 0),
    'h1/walk': (4.0, None, 3),
}


def strip_of(policy: str) -> Image.Image:
    """Return images of what a policy does, from left to right."""
    seconds, camera, seed = LEARNED[policy]
    trained = load_trained(Path(f'robots/{policy}.onnx'))
    with TemporaryDirectory() as folder:
        file = Path(folder) / 'strip.png'
        play(trained.act, trained.config(1, seed), file, seconds=seconds, size=(WIDTH, HEIGHT), camera=camera)
        return Image.open(file).convert('RGB')


def picture_of(task: str) -> Image.Image:
    """Return an image of a task after three steps, with its name."""
    env: Any = gymnasium.make(
        f'internutopia:InternUtopia/{task}-v0',
        render_mode='rgb_array',
        width=WIDTH,
        height=HEIGHT,
        camera=CAMERAS.get(task),
    )
    env.reset(seed=1)
    for _ in range(3):
        env.step(np.zeros(env.action_space.shape, np.float32))
    picture = Image.fromarray(env.render())
    env.close()
    draw = ImageDraw.Draw(picture)
    left, top, right, bottom = draw.textbbox((6, 4), task)
    draw.rectangle((left - 3, top - 2, right + 3, bottom + 2), fill=(20, 20, 20))
    draw.text((6, 4), task, fill='white')
    return picture


if __name__ == '__main__':
    gallery = Image.new('RGB', (WIDTH * COLUMNS, HEIGHT * len(TASKS) // COLUMNS))
    for k, task in enumerate(TASKS):
        gallery.paste(picture_of(task), (WIDTH * (k % COLUMNS), HEIGHT * (k // COLUMNS)))
    gallery.quantize(256).save(IMAGES / 'tasks.png', optimize=True)
    strips = [strip_of(policy) for policy in LEARNED]
    learned = Image.new('RGB', (strips[0].width, sum(strip.height for strip in strips)))
    for k, strip in enumerate(strips):
        learned.paste(strip, (0, k * strip.height))
    learned.quantize(256).save(IMAGES / 'learned.png', optimize=True)
