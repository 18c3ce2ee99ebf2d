"""A handle that somebody drags, and keys that somebody presses, in a real browser (Debian's package `chromium`)."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='a session needs the extra `viewer`')

from browsers import chromium

from internutopia.core.util.rotations import quat_rotate_inverse
from internutopia.core.vec_env import Env
from internutopia.teleoperation import Session
from internutopia.teleoperation.page import PageDevice
from internutopia.viewer import attach

pytestmark = pytest.mark.slow

_PATIENCE = 300_000  # ms: a machine without a GPU renders the page in software
_REACHED = 0.01  # m
_MOVED = 0.05  # m
_ARROW = 0.15  # m, from the middle of the handle
_ATTEMPTS = 30
_SIZE = 1600, 800  # pixels


def pixel(camera: Any, point: Any) -> tuple[float, float]:
    """Where a point of the page's scene is seen; the camera looks along its z axis, +y is down."""
    width, height = _SIZE
    x, y, z = quat_rotate_inverse(np.array(camera.wxyz), np.array(point) - camera.position)
    focal = 0.5 * height / np.tan(0.5 * camera.fov)
    return width / 2 + focal * x / z, height / 2 + focal * y / z


def told(env: Env) -> Any:
    """Where a page tells the arm to be `(3,)` [m]; None if it tells it nothing."""
    command = env.runner.overrides.get(0, {}).get('franka')
    return None if command is None else command['arm_ik_controller'][:3]


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

        try:
            page = browser.new_page(viewport={'width': _SIZE[0], 'height': _SIZE[1]})
            page.set_default_timeout(_PATIENCE)
            page.on('pageerror', lambda error: faults.append(str(error)))
            page.goto(viewer.url)
            page.get_by_text('ManipulationTask').wait_for()
            (client,) = viewer.server.get_clients().values()
            start, axis = gripper().xpos.copy(), gripper().xmat.reshape(3, 3)[:, 2].copy()
            target = start
            for _ in range(_ATTEMPTS):  # the page may not have drawn the handle yet
                page.mouse.move(*pixel(client.camera, start + 0.6 * _ARROW * axis))
                page.mouse.down()
                page.mouse.move(*pixel(client.camera, start + 1.2 * _ARROW * axis), steps=8)
                page.mouse.up()
                page.wait_for_timeout(1000)
                target = told(franka)
                if target is not None and np.linalg.norm(target - start) > _MOVED:
                    break
            assert np.linalg.norm(target - start) > _MOVED
            while np.linalg.norm(gripper().xpos - target) > _REACHED:
                page.wait_for_timeout(100)
            page.keyboard.press('r')  # up
            while gripper().xpos[2] < target[2] + _MOVED:
                page.wait_for_timeout(100)
            page.keyboard.press('y')
            page.get_by_text('1 success').wait_for()
        finally:
            stop.set()
            running.join()
    assert faults == []
