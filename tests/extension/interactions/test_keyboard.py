"""`KeyboardInteraction` on real (pseudo) terminals."""

from __future__ import annotations

import io
import logging
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from internutopia.core.util.interaction import BaseInteraction
from internutopia_extension.interactions import keyboard
from internutopia_extension.interactions.keyboard import REPEAT, TAP, KeyboardInteraction

PATIENCE = 300  # s until a program that does not answer is given up


class Clock:
    """Stands still but when it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(keyboard, 'monotonic', clock)
    return clock


@pytest.fixture
def fingers(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The keys of a terminal behind stdin: what is written to this file is typed."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr(sys, 'stdin', stdin)
        yield master
    os.close(master)


def flags() -> tuple[bool, bool]:
    mode = termios.tcgetattr(sys.stdin.fileno())[3]
    return bool(mode & termios.ECHO), bool(mode & termios.ICANON)


def test_it_is_registered():
    assert BaseInteraction.interactions['Keyboard'] is KeyboardInteraction


def test_keys_come_in_their_order_capitals_too(fingers: int, clock: Clock):
    keys = KeyboardInteraction()
    assert keys.type == 'Keyboard' and keys.get_input().tolist() == [0.0] * 6
    for index, key in enumerate(b'ikjluo'):
        for typed in (key, key - 32):
            clock.now += TAP
            os.write(fingers, bytes([typed]))
            assert keys.get_input().tolist() == [float(i == index) for i in range(6)]
    clock.now += TAP
    os.write(fingers, b'iLx\n\xc3\xbc')  # with keys that mean nothing
    assert keys.get_input().tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    keys.close()


def test_a_key_is_released_some_time_after_it_was_last_repeated(fingers: int, clock: Clock):
    keys = KeyboardInteraction()
    os.write(fingers, b'i')
    assert keys.get_input()[0] == 1.0
    clock.now += 0.99 * TAP  # before the keyboard repeats it
    assert keys.get_input()[0] == 1.0
    for _ in range(20):
        os.write(fingers, b'i')
        assert keys.get_input()[0] == 1.0
        clock.now += 0.99 * REPEAT
    assert keys.get_input()[0] == 1.0
    clock.now += 0.02 * REPEAT
    assert keys.get_input()[0] == 0.0
    keys.close()


def test_arrows_and_function_keys_are_no_letters(fingers: int, clock: Clock):
    keys = KeyboardInteraction()
    os.write(fingers, b'\x1bOP\x1bOI\x1b[1;2L\x1b[15~\x1b[K')
    assert keys.get_input().tolist() == [0.0] * 6
    keys.close()


def test_the_terminal_is_given_back(fingers: int):
    before = flags()
    keys = KeyboardInteraction()
    assert before == (True, True) and flags() == (False, False)
    keys.close()
    keys.close()
    assert flags() == before and keys.get_input().tolist() == [0.0] * 6


def test_a_terminal_that_a_shell_has_set_up_anew_is_taken_again(fingers: int, clock: Clock):
    keys = KeyboardInteraction()
    mode = termios.tcgetattr(sys.stdin.fileno())
    mode[3] |= termios.ECHO | termios.ICANON
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, mode)
    keys.get_input()
    assert flags() == (False, False)
    os.write(fingers, b'o')
    assert keys.get_input()[5] == 1.0
    keys.close()


def test_a_terminal_that_is_gone_presses_no_key(monkeypatch: pytest.MonkeyPatch):
    master, slave = pty.openpty()
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr(sys, 'stdin', stdin)
        keys = KeyboardInteraction()
        os.close(master)
        assert keys.get_input().tolist() == [0.0] * 6
        keys.close()


@pytest.fixture(params=['none', 'text', 'file'])
def no_terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What stdin is in programs without a terminal."""
    with open(os.devnull) as file:
        monkeypatch.setattr(sys, 'stdin', {'none': None, 'text': io.StringIO('i'), 'file': file}[request.param])
        yield


def test_without_a_terminal_there_is_one_warning_and_no_key(no_terminal: None, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        keys = KeyboardInteraction()
        assert [keys.get_input().tolist() for _ in range(3)] == [[0.0] * 6] * 3
        keys.close()
    assert [record.getMessage() for record in caplog.records] == [
        'KeyboardInteraction: stdin is no terminal, so no key is ever pressed'
    ]


PROGRAM = """
import sys
from internutopia_extension.interactions.keyboard import KeyboardInteraction
keys = KeyboardInteraction()
print('ready', flush=True)
while not keys.get_input()[{key}]:
    pass
print('A KEY CAME', flush=True)
{end}
"""


def run_on_a_terminal(code: str, typed: bytes) -> tuple[int, bytes, tuple[bool, bool]]:
    """Run a program on a terminal of its own; exit code, what it printed, and whether it echoes and takes lines after.

    `typed` is typed as soon as the program is ready.
    """
    master, slave = pty.openpty()
    lead = 'import fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n'
    # a shell lets what it starts in the background ignore Ctrl-C
    lead += 'signal.signal(signal.SIGINT, signal.default_int_handler)\n'
    program = subprocess.Popen(
        [sys.executable, '-c', lead + code], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    printed = b''
    deadline = time.monotonic() + PATIENCE
    try:
        while program.poll() is None:
            assert time.monotonic() < deadline, printed
            if select.select([master], [], [], 0.05)[0]:
                printed += os.read(master, 1024)
                if b'ready' in printed and typed:
                    os.write(master, typed)
                    typed = b''
        while select.select([master], [], [], 0)[0]:
            printed += os.read(master, 1024)
        mode = termios.tcgetattr(slave)[3]
        return program.returncode, printed, (bool(mode & termios.ECHO), bool(mode & termios.ICANON))
    finally:
        program.kill()
        program.wait()
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize(
    ('end', 'typed', 'code'),
    [
        ('', b'u', 0),
        ('raise RuntimeError', b'u', 1),
        ('sys.exit(3)', b'u', 3),
        ('', b'\x03', -signal.SIGINT),  # Ctrl-C before a key
    ],
    ids=['end', 'error', 'exit', 'ctrl-c'],
)
def test_a_program_that_ends_leaves_the_terminal_as_it_was(end, typed, code):
    returned, printed, mode = run_on_a_terminal(PROGRAM.format(key=4, end=end), typed)
    assert returned == code, printed
    assert (b'A KEY CAME' in printed) == (typed == b'u')
    assert mode == (True, True)
