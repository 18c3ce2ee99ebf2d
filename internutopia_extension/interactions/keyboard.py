"""The keyboard, read through the terminal that the program runs in.

A terminal reports keys that go down, and repeats them while they are held, but not that they go up. So a key counts as
pressed for `TAP` after it was received, which bridges the pause before the keyboard repeats it, and for `REPEAT` after
each repetition.
"""

from __future__ import annotations

import atexit
import os
import re
import select
import sys
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.util.interaction import BaseInteraction
from internutopia.util import log
from internutopia.util.conventions import raise_if_gone

KEYS = 'ikjluo'
"""The keys that are read, capitals too, in the order of `KeyboardInteraction.get_input`."""
TAP = 0.6
"""Time for which a new key counts as pressed [s]; keyboards begin to repeat after 0.25 s to 0.66 s."""
REPEAT = 0.15
"""Time for which a key counts as pressed after a repetition [s]; keyboards repeat every 0.03 s to 0.1 s."""

_SEQUENCE = re.compile(rb'\x1b[\[O][0-?]*[ -/]*[@-~]')  # arrows and function keys, some with a letter of KEYS in it

__getattr__ = raise_if_gone(__name__)


class PressedKeys:
    """Keys of a keyboard that reports presses and repetitions, but no releases.

    Args:
        tap: how long a key that is new counts as pressed [s].
        repeat: how long it does after a repetition [s].
    """

    def __init__(self, tap: float = TAP, repeat: float = REPEAT):
        self._tap, self._repeat = tap, repeat
        self._until: dict[str, float] = {}  # when keys count as released

    def press(self, key: str) -> bool:
        """Add a press or repetition of a key; returns True if it was not pressed before."""
        now = monotonic()
        pressed = self._until.get(key, now) > now
        self._until[key] = now + (self._repeat if pressed else self._tap)
        return not pressed

    def pressed(self) -> frozenset[str]:
        """Return the pressed keys."""
        now = monotonic()
        return frozenset(key for key, until in list(self._until.items()) if until > now)

    def clear(self) -> None:
        """Release all keys."""
        self._until.clear()


@BaseInteraction.register('Keyboard')
class KeyboardInteraction(BaseInteraction):
    """Six keys of the terminal behind stdin, which echoes nothing until `close`, or the program's end.

    Where stdin is no terminal there is one warning, and no key is ever pressed: scripts run on. The same goes for a
    terminal whose keys go to another program, until they come back.
    """

    def __init__(self) -> None:
        self._keys = PressedKeys()
        self._terminal = _Terminal.of_stdin()
        if self._terminal is None:
            log.warning('KeyboardInteraction: stdin is no terminal, so no key is ever pressed')

    @override
    def get_input(self) -> NDArray[np.float64]:
        """Return the pressed keys: 1.0 or 0.0 for I, K, J, L, U, O; `(6,)`."""
        pressed, _ = self.read()
        return np.array([float(key in pressed) for key in KEYS])

    def read(self) -> tuple[frozenset[str], list[str]]:
        """Return the pressed keys, letters in lower case, and those that went down since the last call."""
        typed = b'' if self._terminal is None else self._terminal.read()
        keys = _SEQUENCE.sub(b'', typed).decode('ascii', 'ignore').lower()
        went_down = [key for key in keys if self._keys.press(key)]
        return self._keys.pressed(), went_down

    def close(self) -> None:
        """Release the terminal; no key is pressed from now on."""
        self._keys.clear()
        if self._terminal is not None:
            self._terminal.close()
            self._terminal = None


class _Terminal:
    """A terminal that delivers each key at once and echoes none; `close` restores its settings.

    Signals of keys (Ctrl-C, Ctrl-Z) work. While a program is stopped, its shell sets up the terminal for itself; that
    is undone with the next `read`. POSIX only.
    """

    def __init__(self, file: int):
        import termios

        self._file = file
        self._mode: list[Any] | None = None  # as it was; None until it was changed
        self._termios = termios
        self._process = os.getpid()
        self._take()
        atexit.register(self.close)

    @classmethod
    def of_stdin(cls) -> _Terminal | None:
        """Return the terminal behind stdin, if it is one."""
        try:
            file = sys.stdin.fileno()
            return cls(file) if os.isatty(file) else None
        except (AttributeError, ImportError, OSError, ValueError):  # no stdin, a closed one, or Windows
            return None

    def read(self) -> bytes:
        """Return the input since the last call; nothing while another program has the keyboard."""
        typed = b''
        try:
            if not self._take():
                return b''
            while select.select([self._file], [], [], 0)[0]:
                new = os.read(self._file, 1024)
                if not new:
                    break
                typed += new
        except (OSError, self._termios.error):  # the terminal was closed
            pass
        return typed

    def close(self) -> None:
        """Put the terminal back as it was."""
        atexit.unregister(self.close)
        mode, self._mode = self._mode, None
        if mode is not None and os.getpid() == self._process and self._is_ours():
            try:
                self._termios.tcsetattr(self._file, self._termios.TCSADRAIN, mode)
            except self._termios.error:  # it was closed
                pass

    def _take(self) -> bool:
        """Set the terminal to deliver keys at once. False if they go to another program, which is left undisturbed."""
        if not self._is_ours():
            return False
        mode = self._termios.tcgetattr(self._file)
        flags = self._termios.ECHO | self._termios.ICANON
        if mode[3] & flags:
            self._mode = self._mode or mode
            changed = [*mode[:3], mode[3] & ~flags, *mode[4:6], list(mode[6])]
            changed[6][self._termios.VMIN], changed[6][self._termios.VTIME] = 1, 0
            self._termios.tcsetattr(self._file, self._termios.TCSADRAIN, changed)
        return True

    def _is_ours(self) -> bool:
        """Return True if input goes to this program; the system stops programs that read the input of another one."""
        try:
            return os.tcgetpgrp(self._file) == os.getpgrp()
        except OSError:  # a terminal that controls no programs
            return True
