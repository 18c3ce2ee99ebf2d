"""A handle that somebody drags, and keys that somebody presses, in a real browser (Debian's package `chromium`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='a session needs the extra `viewer`')

from browsers import chromium

from internutopia.core.vec_env import Env
from internutopia.teleoperation import Session
from internutopia.teleoperation.page import PageDevice
from internutopia.util.rotations import quat_rotate_inverse
from internutopia.viewer import attach

pytestmark = pytest.mark.slow

_PATIENCE = 300_000  # ms: a machine without a GPU renders the page in software
_REACHED = 0.01  # m
_MOVED = 0.05  # m
_ARROW = 0.15  # m, from the middle of the handle
_ATTEMPTS = 20
_SIZE = 1000, 600  # pixels


def pixel(camera: Any, point: Any) -> tuple[float, float]:
    """Where a point of the page's scene is seen; the camera looks along its z axis, +y is down."""
    width, height = _SIZE
    x, y, z = quat_rotate_inverse(np.array(camera.wxyz), np.array(point) - camera.position)
    focal = 0.5 * height / np.tan(0.5 * camera.fov)
    return width / 2 + focal * x / z, height / 2 + focal * y / z


def wait_until(page: Any, done: Callable[[], Any]) -> None:
    """Let the page go on until something is true."""
    for _ in range(_PATIENCE // 100):
        if done():
            return
        page.wait_for_timeout(100)
    raise AssertionError('never true')


@pytest.mark.nightly
def test_the_gripper_follows_the_handle_and_the_keys(franka: Env):
    faults: list[str] = []
    with attach(franka, speed=1.0) as viewer, chromium() as browser:
        device = PageDevice(viewer.server)
        session = Session(franka, 'franka', [device], viewer, show=device.show)
        stop = threading.Event()
        running = threading.Thread(target=session.run, kwargs={'stopped': stop.is_set})
        running.start()
        world: Any = franka.runner.world

        def gripper() -> Any:
            return world.data(0).body('robots/franka/right_gripper')

        def target() -> Any:  # of the page; where the arm is if it tells it nothing
            command = franka.runner.overrides.get(0, {}).get('franka')
            return gripper().xpos.copy() if command is None else command['arm_ik_controller'][:3]

        try:
            page = browser.new_page(viewport={'width': _SIZE[0], 'height': _SIZE[1]})
            page.set_default_timeout(_PATIENCE)
            page.on('pageerror', lambda error: faults.append(str(error)))
            page.goto(viewer.url)
            page.get_by_text('ManipulationTask').wait_for()
            (client,) = viewer.server.get_clients().values()
            placed = viewer.server.initial_camera  # by the viewer, for all pages
            wait_until(page, lambda: np.allclose(client.camera.position, placed.position, atol=0.01))
            for _ in range(_ATTEMPTS):
                page.wait_for_timeout(3000)
                start, axis = gripper().xpos.copy(), gripper().xmat.reshape(3, 3)[:, 2].copy()
                page.mouse.move(*pixel(client.camera, start + 0.85 * _ARROW * axis))
                page.mouse.down()
                page.mouse.move(*pixel(client.camera, start - 0.4 * _ARROW * axis), steps=8)
                page.mouse.up()
                page.wait_for_timeout(3000)
                if np.linalg.norm(target() - start) > _MOVED:
                    break
                # the handle was not drawn yet: the view has turned
                client.camera.position, client.camera.look_at = placed.position, placed.look_at
            assert franka.runner.overrides
            wait_until(page, lambda: np.linalg.norm(gripper().xpos - target()) < _REACHED)
            height = target()[2]

            def rises() -> bool:
                page.keyboard.press('r')  # again and again: a tap lasts too short where steps take long
                return gripper().xpos[2] > height + _MOVED

            wait_until(page, rises)
            page.keyboard.press('y')
            page.get_by_text('1 success').wait_for()
        finally:
            stop.set()
            running.join()
    assert faults == []
