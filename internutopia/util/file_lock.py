"""File lock between processes; the system releases it when the process that holds it ends."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from internutopia.util.log import log

if sys.platform != 'win32':
    import fcntl

PATIENCE = 0.5  # s: a process that was killed keeps its locks until the system has cleaned up behind it


def lock_file(file: int, path: str, exclusive: bool, patience: float, taken: str, writer: str) -> None:
    """Lock an open file or folder, in place of the lock that is held; does nothing where the system has no such locks.

    Args:
        file: its file descriptor.
        path: its name, for messages.
        exclusive: be alone with it. Otherwise several may hold it, but none of them exclusively.
        patience: how long to wait [s].
        taken: message of the error if others keep it.
        writer: what there should be one of, if it cannot be locked.

    Raises:
        BlockingIOError: others keep it.
    """
    if sys.platform == 'win32':
        return
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    deadline = time.monotonic() + patience
    while True:
        try:
            return fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise BlockingIOError(error.errno, taken, path) from None
        except OSError as error:  # not every network file system has locks
            text = '%s cannot be locked (%s): make sure that one %s writes to it'
            return log.warning(text, path, error.strerror, writer)
        time.sleep(0.01)


def unlock_file(file: int) -> None:
    """Release the lock of an open file: closing it would not do if a forked child has it open, too."""
    if sys.platform != 'win32':
        with suppress(OSError):  # not every network file system has locks
            fcntl.flock(file, fcntl.LOCK_UN)
