"""The keyboard as a device, on a (pseudo) terminal."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator

import pytest

from internutopia.teleoperation import Signal
from internutopia.teleoperation.device import KeyboardDevice


@pytest.fixture
def fingers(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The keys of a terminal behind stdin: what is written to this file is typed."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr(sys, 'stdin', stdin)
        yield master
    os.close(master)


@pytest.mark.parametrize(
    ('keys', 'twist'),
    [
        (b'w', [1, 0, 0, 0, 0, 0]),
        (b'sD', [-1, -1, 0, 0, 0, 0]),
        (b'rqi', [0, 0, 1, 0, 1, 1]),
        (b'ws', [0, 0, 0, 0, 0, 0]),
        (b'.\n', [0, 0, 0, 0, 0, 0]),
    ],
)
def test_keys_that_are_pressed_move(keys: bytes, twist: list[int], fingers: int):
    device = KeyboardDevice()
    os.write(fingers, keys)
    assert device.read().twist.tolist() == twist
    device.close()


def test_a_key_that_is_held_says_it_once(fingers: int):
    device = KeyboardDevice()
    os.write(fingers, b'gyyyy')
    assert device.read().signals == (Signal.GRIPPER, Signal.SUCCESS)
    assert device.read().signals == ()
    device.close()


def test_without_a_terminal_it_is_refused(monkeypatch: pytest.MonkeyPatch):
    with open(os.devnull) as file:
        monkeypatch.setattr(sys, 'stdin', file)
        with pytest.raises(ValueError, match='stdin is none; use the device page'):
            KeyboardDevice()
