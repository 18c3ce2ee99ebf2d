"""Keyboard device: keys of the terminal that the program runs in."""

from __future__ import annotations

import sys

from internutopia.teleoperation.device import DeviceInput
from internutopia.teleoperation.keys import input_of
from internutopia_extension.interactions.keyboard import KeyboardInteraction


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
