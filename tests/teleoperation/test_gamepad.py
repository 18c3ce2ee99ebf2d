"""A gamepad at somebody's browser: what its script sends, and the script itself."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='a gamepad needs the extra `viewer`')

from browsers import chromium

from internutopia.core.vec_env import Env
from internutopia.teleoperation import Signal
from internutopia.teleoperation.gamepad import GamepadDevice
from internutopia.viewer import attach
from internutopia.viewer.viewer import Viewer

# A pad whose left stick is pushed forward by a half and to the right, and whose first button is held
_PAD = """
const button = (value) => ({value, pressed: value > 0.5});
const pad = {mapping: 'standard', axes: [1, -0.5, 0, 0.05], buttons: [button(1), ...Array(16).fill(button(0))]};
navigator.getGamepads = () => [null, pad];
"""


@pytest.fixture
def viewer(franka: Env) -> Iterator[Viewer]:
    """Of an env in which an episode runs."""
    franka.reset()
    with attach(franka) as viewer:
        yield viewer


def send(viewer: Viewer, axes: list[float], **pressed: float) -> int:
    """Say how a gamepad is, with some buttons `b<number>`; returns the status."""
    buttons = [pressed.get(f'b{number}', 0.0) for number in range(17 if len(axes) == 4 else 2)]
    query = f'axes={",".join(map(str, axes))}&buttons={",".join(map(str, buttons))}'
    with urllib.request.urlopen(f'{viewer.url}gamepad?{query}') as answer:
        return answer.status


def test_sticks_move_and_buttons_signal_once(viewer: Viewer) -> None:
    with closing(GamepadDevice(viewer)) as device:
        assert not device.read().twist.any()
        assert send(viewer, [0.25, -1.0, 0.5, 0.09], b0=1.0, b5=1.0, b6=0.75) == 204
        assert send(viewer, [0.25, -1.0, 0.5, 0.09], b0=1.0, b3=1.0, b5=1.0, b6=0.75) == 204
        read = device.read()
        # forward, left, up, roll, pitch (within the dead zone), yaw
        np.testing.assert_allclose(read.twist, [1.0, -0.25, -0.75, 1.0, 0.0, -0.5])
        assert read.signals == (Signal.GRIPPER, Signal.SUCCESS)
        assert device.read().signals == ()


def test_a_space_mouse_moves_in_the_directions_in_which_it_is_pushed(viewer: Viewer) -> None:
    """Its axes are those of HID: to the right, to the person, down, and turns about them."""
    with closing(GamepadDevice(viewer)) as device:
        for axis, twist in enumerate(np.eye(6)[[1, 0, 2, 4, 3, 5]]):
            assert send(viewer, np.eye(6)[axis].tolist(), b1=1.0) == 204
            np.testing.assert_array_equal(device.read().twist, -twist)
        assert send(viewer, [0.0] * 6, b0=1.0) == 204
        assert device.read().signals == (Signal.GRIPPER,)


@pytest.mark.parametrize('query', ['', 'axes=0,0,0,0&buttons=0', 'axes=0,0,0,nan&buttons=' + ','.join('0' * 17)])
def test_what_is_no_gamepad_is_refused(viewer: Viewer, query: str) -> None:
    with closing(GamepadDevice(viewer)) as device:
        with pytest.raises(urllib.error.HTTPError, match='400'):
            urllib.request.urlopen(f'{viewer.url}gamepad?{query}')
        assert not device.read().twist.any()


def test_nobody_steers_without_the_token(viewer: Viewer) -> None:
    with closing(GamepadDevice(viewer)), pytest.raises(urllib.error.HTTPError, match='403'):
        urllib.request.urlopen(viewer.url.rsplit('/', 2)[0] + '/gamepad?axes=1')


@pytest.mark.slow
def test_a_page_sends_the_gamepad_of_its_browser(viewer: Viewer) -> None:
    faults: list[str] = []
    with closing(GamepadDevice(viewer)) as device, chromium() as browser:
        page: Any = browser.new_page()
        page.set_default_timeout(300_000)
        page.add_init_script(_PAD)
        page.on('pageerror', lambda error: faults.append(str(error)))
        with page.expect_response(lambda response: '/gamepad?' in response.url) as answer:
            page.goto(viewer.url)
        assert answer.value.status == 204
        signals: list[Signal] = []
        while not (read := device.read()).twist.any():
            signals += read.signals
            page.wait_for_timeout(20)
    np.testing.assert_allclose(read.twist, [0.5, -1.0, 0.0, 0.0, 0.0, 0.0])
    assert [*signals, *read.signals] == [Signal.GRIPPER]
    assert faults == []
