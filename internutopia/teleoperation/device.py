"""Device: input of a person, read once before each step; the keys of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia_extension.interactions.keyboard import KeyboardInteraction

Twist = NDArray[np.float64]
"""Velocity forward, to the left and up, and about these axes (roll, pitch, yaw), `(6,)`; each as a fraction of the
maximum, from -1 to 1."""


class Signal(Enum):
    """Signal of a person other than a motion."""

    GRIPPER = 'close or open the gripper'
    NEXT_PART = 'move another part: the base, an arm'
    SUCCESS = 'the episode is a success: go on with the next one'
    RESET = 'the episode is none: go on with the next one'
    DISCARD = 'the episode does not count: start it again'
    END = 'end the session'


@dataclass(frozen=True)
class DeviceInput:
    """Input of a device at an instant; `signals` are those since the last read, in order."""

    twist: Twist = field(default_factory=lambda: np.zeros(6))
    signals: tuple[Signal, ...] = ()

    @classmethod
    def sum(cls, inputs: Sequence[DeviceInput]) -> DeviceInput:
        """Combine the inputs of several devices."""
        twist = np.sum([each.twist for each in inputs], axis=0)
        return cls(np.clip(twist, -1.0, 1.0), tuple(signal for each in inputs for signal in each.signals))


class Device(Protocol):
    """Input device: a keyboard, a page in a browser, ..."""

    def read(self) -> DeviceInput:
        """Return the current input without waiting."""
        ...

    def close(self) -> None:
        """Release the device; idempotent."""
        ...


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
