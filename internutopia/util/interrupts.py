"""Interrupts: Ctrl-C and other signals that stop a program.

    with interrupts() as interruption:
        prepare()  # here, a signal raises an `InterruptedByUser`
        with interruption.deferred(patience=3.0):  # here, it is noted; raised if the block continues for so long
            while not interruption.is_set():
                step()

So open resources are closed. A second signal ends the process at once, and so does the first one if the main thread
does not notice it, in a long computation in C, or takes too long to close everything. The exit code is the same, and
child processes end, too, see `child_process`.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

INTERRUPTED = 128
"""Exit code of a program that a signal has stopped, less the number of the signal, as in shells."""
_ANSWER_TIMEOUT = 3.0  # s that the main thread has to notice a signal
_CLOSING_TIMEOUT = 30.0  # s that it then has until the end
_POLL_INTERVAL = 0.05  # s
_active: Interruption | None = None


class InterruptedByUser(KeyboardInterrupt):
    """A signal has requested the program to stop: Ctrl-C, or another one."""


class _LeftError(Exception):
    """The context that could be interrupted has ended."""


class Interruption:
    """The signal that has requested the program to stop, if any."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._patience: float | None = None  # s; None while signals are not deferred
        self._overdue = False  # a deferred signal is to be raised now
        self._shared = False  # others handle signals, too, and may send them again

    def is_set(self) -> bool:
        """Return True if a signal has arrived."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """`INTERRUPTED` + the number of the signal; 0 if none has arrived."""
        return 0 if self.signal is None else INTERRUPTED + self.signal

    @contextmanager
    def deferred(self, patience: float = math.inf) -> Iterator[None]:
        """Only note the first signal in this context; it is raised if the block continues for `patience` [s].

        With infinite patience others may handle signals in the block.
        """
        self._patience = patience
        self._shared = self._shared or patience == math.inf
        try:
            yield
        finally:
            self._patience = None

    def handle(self, number: int, _: object) -> None:
        """Handle a signal, in the main thread."""
        if self.signal is not None and not self._overdue:
            os._exit(INTERRUPTED + number)
        if self._overdue:
            self._patience = None
        self.signal, self._overdue = number, False
        if self._patience is None:
            raise InterruptedByUser

    def watch(self, signals: socket.socket) -> None:
        """Ensure that the first signal ends the program: the body of a thread, which gets their numbers as bytes."""
        with suppress(_LeftError):
            self._watch(signals)

    def _watch(self, signals: socket.socket) -> None:
        first = _read(signals, None)

        def in_time(done: Callable[[], bool], timeout: float) -> bool:
            end = time.monotonic() + timeout
            while not done() and time.monotonic() < end:
                second = _read(signals, _POLL_INTERVAL)
                if second and not self._shared:
                    os._exit(INTERRUPTED + second)
            return done()

        if not in_time(lambda: self.is_set() or self._shared, _ANSWER_TIMEOUT):
            os._exit(INTERRUPTED + first)
        if not in_time(lambda: self._patience is None, self._patience or 0.0):
            self._overdue = True
            _wake_main_thread(first)
            _read(signals, None)  # that one
            if not in_time(lambda: not self._overdue, _ANSWER_TIMEOUT):
                os._exit(INTERRUPTED + first)
        in_time(lambda: False, _CLOSING_TIMEOUT)
        os._exit(INTERRUPTED + first)


@contextmanager
def interrupts() -> Iterator[Interruption]:
    """Turn signals that request the program to stop into an `Interruption`, that of the outermost context.

    These are Ctrl-C (SIGINT), SIGTERM, and SIGHUP, that the terminal is gone, unless it is ignored (`nohup`). Threads
    but the main one get none.
    """
    global _active
    if _active is not None or threading.current_thread() is not threading.main_thread():
        yield _active or Interruption()
        return
    interruption = _active = Interruption()
    watched, woken = socket.socketpair()
    woken.setblocking(False)
    before = {each: signal.signal(each, interruption.handle) for each in _signals()}
    wakeup = signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)

    def restore() -> None:
        global _active
        if _active is interruption:
            _active = None
            signal.set_wakeup_fd(wakeup)
            for each, handler in before.items():
                signal.signal(each, handler)

    os.register_at_fork(after_in_child=restore)  # processes that the program forks are not the program
    thread = threading.Thread(target=interruption.watch, args=(watched,), name='internutopia-signals', daemon=True)
    thread.start()
    try:
        yield interruption
    finally:
        restore()
        woken.close()
        thread.join()
        watched.close()


def exit_on_signals() -> None:
    """Let signals end the process at once, with the exit code of `Interruption`: there is nothing to be closed yet."""
    for each in _signals():
        signal.signal(each, lambda number, _: os._exit(INTERRUPTED + number))


def _signals() -> list[signal.Signals]:
    """Return the signals that request this program to stop."""
    known = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, 'SIGHUP') and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not on Windows
        known.append(signal.SIGHUP)
    return known


def _wake_main_thread(number: int) -> None:
    """Make the main thread handle a signal, whatever it waits for."""
    if hasattr(signal, 'pthread_kill'):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:  # Windows
        signal.raise_signal(number)


def _read(signals: socket.socket, timeout: float | None) -> int:
    """Return the number of the next signal that requests the program to stop; 0 after `timeout` [s]."""
    signals.settimeout(timeout)
    try:
        while data := signals.recv(1):
            if data[0] in (signal.SIGINT, signal.SIGTERM, getattr(signal, 'SIGHUP', None)):
                return data[0]
    except TimeoutError:
        return 0
    raise _LeftError
