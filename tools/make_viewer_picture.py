"""Picture of the viewer's page for the documentation, `docs/images/viewer.png`; needs Chromium and the extra `dev`.

python tools/make_viewer_picture.py
"""

from __future__ import annotations

import shutil
import threading
from contextlib import closing
from pathlib import Path

from internutopia.core.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.viewer import attach
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

_PICTURE = Path(__file__).parents[1] / 'docs' / 'images' / 'viewer.png'
_SETTLED = 10_000  # ms, after which everything is there
_PATIENCE = 400_000  # ms: without a GPU, a frame takes seconds


def main() -> None:
    """Let an H1 walk for a second, and take the picture of the paused run."""
    from playwright.sync_api import sync_playwright

    import_extensions()
    robot = H1RobotCfg(position=(-0.2, -0.8, 0.98), controllers=[move_by_speed_cfg])
    task = FiniteStepTaskCfg(scene_asset_path='scenes/warehouse.xml', robots=[robot], max_steps=1000)
    config = Config(simulator=SimConfig(physics_dt=1 / 240, substeps=4), env_num=4, task_configs=[task] * 4)
    walk = [{'h1': {'move_by_speed': [0.8, 0.0, 0.0]}}] * 4
    with closing(Env(config)) as env, sync_playwright() as playwright:
        env.reset()
        for _ in range(60):
            env.step(walk)
        with attach(env, paused=True) as viewer:
            running = threading.Thread(target=env.step, args=(walk,))
            running.start()  # and waits
            browser = playwright.chromium.launch(executable_path=shutil.which('chromium'), args=['--no-sandbox'])
            page = browser.new_page(viewport={'width': 960, 'height': 600})
            page.set_default_timeout(_PATIENCE)
            page.goto(viewer.url)
            page.get_by_text('episode 0').wait_for()
            page.locator('.mantine-Notification-closeButton').click()  # it says that there is no GPU
            page.wait_for_timeout(_SETTLED)
            page.screenshot(path=_PICTURE, timeout=_PATIENCE)
            browser.close()
        running.join()


if __name__ == '__main__':
    main()
