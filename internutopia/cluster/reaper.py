"""Reaper: process that ends a Ray cluster with the program that started it, however that one ends.

Ray does so, too, but not at once and not with everything: agents of a killed program search for their dead cluster for
another minute, workers finish what they compute, and the folder of logs and sockets stays. So the processes of the
cluster inherit an environment variable, by which this one finds them (on Linux). It sleeps until the program has ended
or has closed the pipe to it, kills what is left, and removes the folder. It imports next to nothing.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from internutopia.util.child_process import start_python

_MARK = '_INTERNUTOPIA_RAY_CLUSTER'  # the environment variable
_KEEP_ENVIRONMENT = 'SPT_NOENV'  # else Ray's processes write their titles over some of their variables
_TIMEOUT = 10.0  # s that processes may take to end after they were killed


class Reaper:
    """Handle of the process that ends those started in `marking` and removes a folder, with this program or on `end`.

    Args:
        folder: what is removed at last.
    """

    def __init__(self, folder: str):
        self._mark = f'{_MARK}={uuid.uuid4().hex}'
        self._process = start_python(
            _reap,
            *(os.getpid(), self._mark, folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},  # a program that is a worker itself is marked: its own reaper shall outlive it
        )

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Context in which processes are started that shall be ended."""
        name, _, value = self._mark.partition('=')
        changes = {name: value, _KEEP_ENVIRONMENT: '1'}
        before = {each: os.environ.get(each) for each in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for each, old in before.items():
                if old is None:
                    del os.environ[each]
                else:
                    os.environ[each] = old

    def keep_folder(self) -> None:
        """Keep the folder, so that its logs can be read."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.write(b'keep')
            self._process.stdin.flush()

    def end(self) -> None:
        """End the processes now, and wait for that."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_TIMEOUT)


def _wait_for_end(parent: int) -> bool:
    """Wait until a process has ended or its pipe is closed; returns True if the folder is to be kept."""
    events, keep = select.poll(), False
    events.register(0, select.POLLIN)
    with suppress(AttributeError, OSError):  # older systems: then the pipe alone, which a fork may keep open
        events.register(os.pidfd_open(parent), select.POLLIN)
    while os.getppid() == parent:
        if any(fd != 0 for fd, _ in events.poll()) or not os.read(0, 64):
            break
        keep = True
    return keep


def _kill_marked(mark: bytes) -> bool:
    """Kill the processes with this mark; returns whether there were any."""
    found = False
    for process in Path('/proc').glob('[0-9]*'):
        with suppress(OSError):  # it has ended, or belongs to another user
            if mark in (process / 'environ').read_bytes().split(b'\0'):
                os.kill(int(process.name), signal.SIGKILL)
                found = True
    return found


def _reap(parent: int, mark: str, folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # it is what comes after them
        signal.signal(number, signal.SIG_IGN)
    keep = _wait_for_end(parent)
    end = time.monotonic() + _TIMEOUT
    while _kill_marked(mark.encode()) and time.monotonic() < end:
        time.sleep(0.02)
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
