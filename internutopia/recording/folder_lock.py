"""Folder lock: one recorder at a time writes to a dataset; the system releases it when the process ends."""

from __future__ import annotations

import os
import sys
import time
import weakref
from pathlib import Path
from types import TracebackType

from internutopia.core.util import log

if sys.platform != 'win32':
    import fcntl

_PATIENCE = 0.5  # s: a process that was killed keeps its locks until the system has cleaned up behind it


class FolderLock:
    """A lock on a folder that is there; a context manager. BlockingIOError, naming the folder, if another has it."""

    def __init__(self, folder: Path):
        if sys.platform == 'win32':
            return
        file = os.open(folder, os.O_RDONLY)
        self._close = weakref.finalize(self, os.close, file)
        self._file = file
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    self._close()
                    text = 'another recorder writes to this dataset: wait for its end, or record to another folder'
                    raise BlockingIOError(error.errno, text, os.fspath(folder)) from None
            except OSError as error:  # not every network file system has locks
                return log.warning('%s cannot be locked (%s): make sure that one recorder writes to it', folder, error)
            time.sleep(0.01)

    def release(self) -> None:
        """Let others have it; twice is fine."""
        if sys.platform != 'win32' and self._close.alive:
            fcntl.flock(self._file, fcntl.LOCK_UN)  # closing it would not do if a forked child has it open, too
            self._close()

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
