"""Interrupts: the first signal is raised or noted, and is the end; a second one is the end at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from internutopia.util.interrupts import InterruptedByUser, interrupts

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
PATIENCE = 300.0  # s


@pytest.mark.parametrize('number', SIGNALS)
def test_a_signal_is_raised_or_noted(number):
    before = signal.getsignal(number)
    with interrupts() as interruption:
        assert not interruption.is_set() and interruption.exit_code == 0
        with pytest.raises(InterruptedByUser):
            os.kill(os.getpid(), number)
        assert interruption.is_set() and interruption.exit_code == 128 + number
    with interrupts() as interruption, interruption.deferred():
        with interrupts() as inner:
            os.kill(os.getpid(), number)
        assert inner is interruption and interruption.exit_code == 128 + number
    assert signal.getsignal(number) is before


def test_patience_with_what_is_deferred_has_an_end():
    with interrupts() as interruption:
        with pytest.raises(InterruptedByUser), interruption.deferred(patience=0.1):
            os.kill(os.getpid(), signal.SIGTERM)
            assert interruption.is_set()
            signal.pause()
        assert interruption.exit_code == 143


def test_who_ignores_that_the_terminal_is_gone_goes_on():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interruption.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


LEAD = """
import ctypes, os, signal, sys, time
from internutopia.util import interrupts as module
from internutopia.util.interrupts import interrupts

def say(word):
    print(word, flush=True)

"""


@contextmanager
def script(body: str) -> Iterator[subprocess.Popen[str]]:
    """A program that has said `ready`."""
    with subprocess.Popen([sys.executable, '-c', LEAD + body], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == 'ready\n'
        yield process
        process.kill()


CLOSES = """
with interrupts():
    try:
        say('ready')
        signal.pause()
    finally:
        say('closing')
        while True:
            time.sleep(0.01)
"""


@pytest.mark.parametrize('number', SIGNALS)
def test_a_second_signal_ends_at_once(number):
    with script(CLOSES) as process:
        process.send_signal(number)
        assert process.stdout is not None and process.stdout.readline() == 'closing\n'
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number


@pytest.mark.parametrize(
    'body',
    [
        'module._CLOSING_TIMEOUT = 0.1' + CLOSES,
        # a lock in C that the thread has already: no signal ends that
        """
module._ANSWER_TIMEOUT = module._CLOSING_TIMEOUT = 0.1
libc, lock = ctypes.CDLL(None), ctypes.create_string_buffer(256)
libc.pthread_mutex_lock(lock)
with interrupts():
    while True:
        try:
            say('ready')
            libc.pthread_mutex_lock(lock)
        except KeyboardInterrupt:  # it came a moment too early
            pass
""",
        """
with interrupts() as interruption, interruption.deferred(patience=0.1):
    try:
        say('ready')
        while True:
            time.sleep(0.01)
    finally:
        os._exit(interruption.exit_code)
""",
    ],
    ids=['closes for too long', 'does not answer', 'defers for too long'],
)
def test_the_first_signal_is_the_end(body):
    with script(body) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 143


def test_a_fork_is_ended_by_signals_as_usual():
    body = """
with interrupts() as interruption:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b'.')
        signal.pause()
        os._exit(0)
    os.read(reader, 1)
    say('ready')
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    sys.exit(0 if os.WIFSIGNALED(status) and not interruption.is_set() else 1)
"""
    with script(body) as process:
        assert process.wait(PATIENCE) == 0
