"""Keys of a session, the same in a terminal and on a page."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from internutopia.teleoperation.device import DeviceInput, Signal

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
