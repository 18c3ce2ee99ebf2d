"""Gamepad device: a gamepad or SpaceMouse on a machine with an open page of a viewer.

Browsers expose them to scripts only. The device adds a short script to the pages, which sends sticks and buttons to the
address that its page has. Buttons count as those of the browsers' standard layout.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import numpy as np
from numpy.typing import NDArray

from internutopia.teleoperation.device import DeviceInput, Signal

if TYPE_CHECKING:
    from internutopia.viewer.viewer import Viewer

Floats = NDArray[np.float64]

_PERIOD = 50  # ms, between two reports of a page
_HELD = 0.3  # s: older reports do not count
_DEAD = 0.1  # of a stick that is let go of
_AXES, _BUTTONS = 4, 16  # of a gamepad, at least
_SPACE_AXES = 6  # of a SpaceMouse: to the right, to the person, down, and turns about these (HID Usage Tables, 4.2)
_HID_AXES = [1, 0, 2, 4, 3, 5]  # those that, negated, are forward, to the left, up
_SPACE_SIGNALS = {0: Signal.GRIPPER, 1: Signal.NEXT_PART}
_ROLL_LEFT, _ROLL_RIGHT, _DOWN, _UP = 4, 5, 6, 7  # shoulder buttons and triggers
_SIGNALS = {0: Signal.GRIPPER, 1: Signal.DISCARD, 2: Signal.NEXT_PART, 3: Signal.SUCCESS, 9: Signal.RESET}
_PATH = 'gamepad'
# HTML that is put on a page runs nothing but its event handlers: an image that cannot be shown has one
_SCRIPT = f"""
const place = this;
const timer = setInterval(() => {{
  if (!place.isConnected) return clearInterval(timer);
  const known = (pad) => pad && (pad.mapping === 'standard' || /space|3dconnexion/i.test(pad.id));
  const pad = [...navigator.getGamepads()].find(known);
  if (!pad) return;
  const axes = pad.axes.map((axis) => axis.toFixed(3)), buttons = pad.buttons.map((button) => button.value.toFixed(3));
  fetch('{_PATH}?axes=' + axes + '&buttons=' + buttons).catch(() => {{}});
}}, {_PERIOD});
"""


class GamepadDevice:
    """Gamepad or SpaceMouse on a machine with an open page of a viewer; of several, the last input counts."""

    def __init__(self, viewer: Viewer):
        self._viewer = viewer
        self._twist = np.zeros(6)
        self._until = 0.0  # when it counts as let go of [s]
        self._pressed = frozenset[int]()
        self._signals: list[Signal] = []
        self._html = viewer.server.gui.add_html(f'<img hidden src="data:," onerror="{_SCRIPT}">')
        viewer.routes[_PATH] = self._take

    def read(self) -> DeviceInput:
        """Return the current input of sticks and buttons."""
        signals, self._signals = self._signals, []
        held = monotonic() < self._until
        return DeviceInput(self._twist.copy() if held else np.zeros(6), tuple(signals))

    def close(self) -> None:
        """Remove the script from the pages; idempotent."""
        if self._viewer.routes.pop(_PATH, None) is not None:
            self._html.remove()

    def _take(self, query: str) -> None:
        """Take the state of a page's gamepad, on the server's loop. ValueError if it is malformed."""
        axes, buttons = (
            np.array([float(each) for each in parse_qs(query).get(name, [''])[0].split(',')])
            for name in ('axes', 'buttons')
        )
        if not np.isfinite([*axes, *buttons]).all():
            raise ValueError(f'expected finite numbers, got {query!r:.200}')
        axes = np.where(np.abs(axes) < _DEAD, 0.0, axes)
        if len(axes) == _AXES and len(buttons) >= _BUTTONS:
            twist, signals = _of_sticks(axes, buttons), _SIGNALS
        elif len(axes) == _SPACE_AXES:
            twist, signals = -axes[_HID_AXES], _SPACE_SIGNALS
        else:
            raise ValueError(f'neither a gamepad nor a SpaceMouse has {len(axes)} axes and {len(buttons)} buttons')
        self._twist = np.clip(twist, -1.0, 1.0)
        self._until = monotonic() + _HELD
        pressed = frozenset(np.flatnonzero(buttons > 0.5).tolist())
        self._signals += [signals[each] for each in sorted(pressed - self._pressed) if each in signals]
        self._pressed = pressed


def _of_sticks(axes: Floats, buttons: Floats) -> Floats:
    """Return the twist of sticks `(4,)`, shoulder buttons and triggers."""
    left_x, left_y, right_x, right_y = axes
    up, roll = buttons[_UP] - buttons[_DOWN], buttons[_ROLL_RIGHT] - buttons[_ROLL_LEFT]
    return np.array([-left_y, -left_x, up, roll, -right_y, -right_x])
