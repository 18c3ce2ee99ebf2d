"""Renders the gallery of tasks: what an env of each looks like.

    MUJOCO_GL=egl python tools/make_task_pictures.py        writes docs/images/tasks.png

Needs Pillow, which comes with `internutopia[cli]`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from PIL import Image, ImageDraw

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'tasks.png'
WIDTH, HEIGHT, COLUMNS = 240, 180, 5  # pixels of a task's picture
TASKS = (
    *('CartPole', 'Jetbot-Goal', 'H1-Stand', 'Franka-Reach', 'Franka-ReachBlock'),
    *('Franka-Lift', 'HalfCheetah', 'Hopper', 'Walker2d', 'Ant'),
    *('Humanoid', 'H1-Velocity', 'Aliengo-Velocity-Rough', 'Jetbot-PointNav', 'Aliengo-Navigation'),
)


def picture_of(task: str) -> Image.Image:
    """Return a picture of a task after three steps, with its name."""
    env: Any = gymnasium.make(
        f'internutopia:InternUtopia/{task}-v0', render_mode='rgb_array', width=WIDTH, height=HEIGHT
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
    gallery.quantize(128).save(PICTURE, optimize=True)
