"""Picture of the viewer's page for the documentation, `docs/images/viewer.png`; needs Chromium and the extra `dev`.

python tools/make_viewer_picture.py
"""

from __future__ import annotations

import shutil
import threading
from contextlib import closing
from pathlib import Path

from internutopia.cli.run_file import read_run_file
from internutopia.core.vec_env import Env
from internutopia.viewer import attach
from internutopia_extension import import_extensions

_ROOT = Path(__file__).parents[1]
_PICTURE = _ROOT / 'docs' / 'images' / 'viewer.png'
_STEPS = 120
_PATIENCE = 400_000  # ms: without a GPU, a frame takes seconds


def main() -> None:
    """Run the demo for two seconds, and take the picture of a paused H1."""
    from playwright.sync_api import sync_playwright

    import_extensions()
    run_file = read_run_file(_ROOT / 'configs' / 'demo.yaml', env_num=2)
    with closing(Env(run_file.config)) as env, sync_playwright() as playwright:
        env.reset()
        walk = {'h1': {'move_along_path': [[[1.1, -1.0, 0.0], [1.2, -2.5, 0.0]]]}}
        for _ in range(_STEPS):
            env.step([walk] * 2)
        with attach(env, paused=True) as viewer:
            running = threading.Thread(target=env.step, args=([walk] * 2,))
            running.start()  # and waits
            browser = playwright.chromium.launch(executable_path=shutil.which('chromium'), args=['--no-sandbox'])
            page = browser.new_page(viewport={'width': 1100, 'height': 680})
            page.set_default_timeout(_PATIENCE)
            page.goto(viewer.url)
            page.get_by_text('episode 0').wait_for()
            page.get_by_role('button', name='Run').wait_for()
            follow = page.get_by_role('combobox').nth(1)
            follow.click()
            page.get_by_role('option', name='h1').click()
            page.locator('.mantine-Notification-closeButton').click()  # it says that there is no GPU
            page.wait_for_timeout(30_000)
            page.screenshot(path=_PICTURE, timeout=_PATIENCE)
            browser.close()
        running.join()


if __name__ == '__main__':
    main()
