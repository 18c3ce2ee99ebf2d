"""Keyboard device: keys of the terminal that the program runs in, the same as those of a page."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np

from internutopia.teleoperation.device import DeviceInput, Signal
from internutopia_extension.interactions.keyboard import KeyboardInteraction

MOVES: dict[str, tuple[int, float, str]] = {
    'w': (0, 1.0, 'Forward'),
    's': (0, -1.0, 'Back'),
    'a': (1, 1.0, 'Left'),
    'd': (1, -1.0, 'Right'),
    'r': (2, 1.0, 'Up'),
    'f': (2, -1.0, 'Down'),
    'l': (3, 1.0, 'Roll right'),
    'j': (3, -1.0, 'Roll left'),
    'i': (4, 1.0, 'Pitch down'),
    'k': (4, -1.0, 'Pitch up'),
    'q': (5, 1.0, 'Turn left'),
    'e': (5, -1.0, 'Turn right'),
}
"""Entry of the twist, sign and label of each key."""
SIGNALS = {
    'g': Signal.GRIPPER,
    't': Signal.NEXT_PART,
    'y': Signal.SUCCESS,
    'n': Signal.RESET,
    'x': Signal.DISCARD,
}


def input_of(pressed: Iterable[str], went_down: Iterable[str]) -> DeviceInput:
    """Return the input of the keys that are pressed, and of those that went down since the last call."""
    twist = np.zeros(6)
    for key in pressed:
        if key in MOVES:
            axis, sign, _ = MOVES[key]
            twist[axis] += sign
    return DeviceInput(twist, tuple(SIGNALS[key] for key in went_down if key in SIGNALS))


class KeyboardDevice:
    """Terminal behind stdin, without echo until `close`.

    ValueError if stdin is no terminal.
    """

    def __init__(self) -> None:
        if sys.stdin is None or not sys.stdin.isatty():
            raise ValueError('the keyboard is read through a terminal, and stdin is none; use the device page')
        self._keyboard = KeyboardInteraction()

    def read(self) -> DeviceInput:
        """Return the current input of the keys."""
        return input_of(*self._keyboard.read())

    def close(self) -> None:
        """Restore the terminal."""
        self._keyboard.close()
