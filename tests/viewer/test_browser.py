"""The page of the viewer in a real browser (Debian's package `chromium`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip('viser', reason='the viewer needs the extra `viewer`')

from browsers import chromium

from internutopia.core.vec_env import Env
from internutopia.viewer import attach

pytestmark = pytest.mark.slow

_PATIENCE = 300_000  # ms: a machine without a GPU renders the page in software
_STAND: list[dict[str, Any]] = [{'jetbot': {'move_by_speed': [0.0, 0.0]}}] * 3


@contextmanager
def stepping(env: Env) -> Iterator[None]:
    """Context in which a program steps the envs and wants the robots to stand."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            env.step(_STAND)

    running = threading.Thread(target=run)
    running.start()
    try:
        yield
    finally:
        stop.set()
        running.join()


def x_of(env: Env, env_id: int) -> float:
    """Where the robot of an env is along the axis that it faces [m]."""
    world: Any = env.runner.world
    return float(world.data(env_id).body('robots/jetbot/chassis').xpos[0])


@pytest.mark.nightly
def test_a_slider_drives_the_robot_of_the_env_that_was_picked(make_env: Any):
    env = make_env()
    env.reset()
    faults: list[str] = []
    origins: set[str] = set()
    with attach(env, speed=1.0) as viewer, stepping(env), chromium() as browser:
        page = browser.new_page(viewport={'width': 480, 'height': 640})
        page.set_default_timeout(_PATIENCE)
        page.on('pageerror', lambda error: faults.append(str(error)))
        page.on('request', lambda request: origins.add('/'.join(request.url.split('/')[:3])))
        page.goto(viewer.url)
        page.get_by_text('episode 0').wait_for()
        number = page.locator('input[inputmode]').first
        number.fill('2')
        number.press('Enter')
        page.get_by_text('episode 2').wait_for()
        page.get_by_role('slider').first.press('End')  # the highest speed
        while x_of(env, 2) < 0.5:
            page.wait_for_timeout(100)
    for untouched in (0, 1):
        assert abs(x_of(env, untouched)) < 0.01
    assert faults == []
    assert len({origin for origin in origins if not origin.startswith(('blob:', 'data:'))}) == 1
