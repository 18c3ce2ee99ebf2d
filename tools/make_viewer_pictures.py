"""Images of the viewer's page for the documentation, `viewer*.png` and `teleoperation.png` in `docs/images`.

They need Chromium and the extra `dev`.

python tools/make_viewer_pictures.py
"""

from __future__ import annotations

import io
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from internutopia.cli.run_file import read_run_file
from internutopia.cli.teleop import EXAMPLE
from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia.teleoperation import Session
from internutopia.teleoperation.page import PageDevice
from internutopia.viewer import attach
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

_IMAGES = Path(__file__).parents[1] / 'docs' / 'images'
_SETTLED = 10_000  # ms, after which everything is there
_PATIENCE = 400_000  # ms: without a GPU, a frame takes seconds


def main() -> None:
    """Capture all images."""
    import_extensions()
    make_viewer_picture()
    make_scenes_picture()
    make_teleoperation_picture()


def make_viewer_picture() -> None:
    """Let an H1 walk for a second, and capture the image of the paused run."""
    robot = H1RobotCfg(position=(-0.2, -0.8, 0.98), controllers=[move_by_speed_cfg])
    task = FiniteStepTaskCfg(scene_asset_path='scenes/warehouse.xml', robots=[robot], max_steps=1000)
    config = Config(simulator=SimConfig(physics_dt=1 / 240, substeps=4), env_num=4, task_configs=[task] * 4)
    walk = [{'h1': {'move_by_speed': [0.8, 0.0, 0.0]}}] * 4
    with closing(Env(config)) as env:
        env.reset()
        for _ in range(60):
            env.step(walk)
        with attach(env, paused=True) as viewer:
            _photograph(viewer.url, lambda: env.step(walk), _IMAGES / 'viewer.png')


def make_scenes_picture() -> None:
    """Pick one env after the other, each with its own scene."""
    robot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[])
    scenes = ['warehouse.xml', 'rooms.xml', 'obstacles.usda', 'apartment.usda']
    tasks: list[TaskCfg] = [
        FiniteStepTaskCfg(scene_asset_path=f'scenes/{scene}', robots=[robot], max_steps=1000) for scene in scenes
    ]
    config = Config(simulator=SimConfig(physics_dt=1 / 240, substeps=4), env_num=4, task_configs=tasks)
    width, height = 550, 320  # of each, half of the page
    sheet = Image.new('RGB', (2 * width, 2 * height))
    with closing(Env(config)) as env:
        env.reset()
        with attach(env, paused=True) as viewer:
            running = threading.Thread(target=env.step, args=([{}] * 4,))
            running.start()
            with _opened(viewer.url, (2 * width, 2 * height)) as page:
                page.get_by_text('Follow').wait_for()
                for number, scene in enumerate(scenes):
                    env_id = page.locator('input[inputmode]').first
                    env_id.fill(str(number))
                    env_id.press('Enter')
                    page.get_by_text(scene, exact=False).first.wait_for()
                    page.wait_for_timeout(_SETTLED)
                    picture = Image.open(io.BytesIO(page.screenshot(timeout=_PATIENCE)))
                    sheet.paste(picture.resize((width, height)), (number % 2 * width, number // 2 * height))
                viewer.close()
            running.join()
    sheet.quantize(128).save(_IMAGES / 'viewer_scenes.png', optimize=True)


def make_teleoperation_picture() -> None:
    """Capture the image of a session that begins."""
    config = read_run_file(EXAMPLE).config
    with (
        closing(Env(config)) as env,
        attach(env, speed=1.0, paused=True) as viewer,
        closing(PageDevice(viewer.server)) as page,
    ):
        session = Session(env, 'franka', [page], viewer, show=page.show)
        _photograph(viewer.url, lambda: session.run(max_steps=1), _IMAGES / 'teleoperation.png')


def _photograph(url: str, run: Callable[[], object], file: Path) -> None:
    """Save an image of a page, while something runs that waits for it."""
    running = threading.Thread(target=run)
    running.start()
    with _opened(url, (1100, 700)) as page:
        page.get_by_text('episode 0', exact=False).first.wait_for()
        page.wait_for_timeout(_SETTLED)
        page.screenshot(path=file, timeout=_PATIENCE)
        page.get_by_role('button', name='Run').click()
        running.join()


@contextmanager
def _opened(url: str, size: tuple[int, int]) -> Iterator[Any]:
    """Context with a page of this size [pixels]."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which('chromium'), args=['--no-sandbox'])
        page = browser.new_page(viewport={'width': size[0], 'height': size[1]})
        page.set_default_timeout(_PATIENCE)
        page.goto(url)
        page.locator('.mantine-Notification-closeButton').click()  # it says that there is no GPU
        yield page
        browser.close()


if __name__ == '__main__':
    main()
