"""Page device: buttons and keys on the pages of a viewer, also those on phones.

A button moves the robot while it is held, a key while it is pressed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from internutopia.teleoperation.device import MOVES, SIGNALS, DeviceInput, Signal, input_of
from internutopia_extension.interactions.keyboard import PressedKeys

if TYPE_CHECKING:
    import viser
    from viser._messages import HotkeyKey

_HOLD_RATE = 10.0  # Hz, at which pages say that a button is held
_HELD = 0.3  # s: a button counts as released after this time without an event
_LABELS = {
    Signal.GRIPPER: ('Gripper', None),
    Signal.NEXT_PART: ('Next part', None),
    Signal.SUCCESS: ('Success', 'green'),
    Signal.RESET: ('Reset', 'gray'),
    Signal.DISCARD: ('Discard', 'red'),
    Signal.END: ('End', 'gray'),
}


class PageDevice:
    """Buttons and keys on all pages of a server; see `Viewer.server`."""

    def __init__(self, server: viser.ViserServer):
        self._keys = PressedKeys()
        self._buttons = PressedKeys(_HELD, _HELD)
        self._signals: list[Signal] = []
        gui = server.gui
        self._folder = gui.add_folder('Teleoperation', order=-1.0)
        with self._folder:
            self._status = gui.add_markdown('')
            for signal, (label, color) in _LABELS.items():
                button = gui.add_button(label, color=cast(Any, color), hint=signal.value)
                button.on_click(self._sends(signal))
            with gui.add_folder('Move', expand_by_default=False):
                for key, (_, _, label) in MOVES.items():
                    gui.add_button(label, color='gray').on_hold(self._holds(key), _HOLD_RATE)
        labels = {key: label for key, (_, _, label) in MOVES.items()}
        labels |= {key: _LABELS[signal][0] for key, signal in SIGNALS.items()}
        self._commands = [
            gui.add_command(label, hotkey=cast('HotkeyKey', key.upper())) for key, label in labels.items()
        ]
        for command, key in zip(self._commands, labels, strict=True):
            command.on_trigger(self._presses(key))

    def show(self, status: str) -> None:
        """Show the progress of the session."""
        self._status.content = status

    def read(self) -> DeviceInput:
        """Return the current input of buttons and keys."""
        signals, self._signals = self._signals, []
        return DeviceInput(input_of(self._keys.pressed() | self._buttons.pressed(), ()).twist, tuple(signals))

    def close(self) -> None:
        """Remove buttons and keys."""
        for command in self._commands:
            command.remove()
        self._commands = []
        self._folder.remove()

    # callbacks run on the server's loop, so that they keep their order

    def _sends(self, signal: Signal) -> Callable[[Any], Any]:
        async def send(_: Any) -> None:
            self._signals.append(signal)

        return send

    def _holds(self, key: str) -> Callable[[Any], Any]:
        async def hold(_: Any) -> None:
            self._buttons.press(key)

        return hold

    def _presses(self, key: str) -> Callable[[Any], Any]:
        async def press(_: Any) -> None:
            if self._keys.press(key) and key in SIGNALS:
                self._signals.append(SIGNALS[key])

        return press
