"""Folder lock: one recorder at a time writes to a dataset; the system releases it when the process ends."""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path
from types import TracebackType

from internutopia.util.file_lock import PATIENCE, lock_file, unlock_file

_TAKEN = 'another recorder writes to this dataset: wait for its end, or record to another folder'


class FolderLock:
    """A lock on a folder that is there; a context manager. BlockingIOError, naming the folder, if another has it."""

    def __init__(self, folder: Path):
        if sys.platform == 'win32':  # where folders cannot be opened
            return
        file = os.open(folder, os.O_RDONLY)
        self._close = weakref.finalize(self, os.close, file)
        self._file = file
        try:
            lock_file(file, os.fspath(folder), True, PATIENCE, _TAKEN, 'recorder')
        except BlockingIOError:
            self._close()
            raise

    def release(self) -> None:
        """Release the lock; may be called twice."""
        if sys.platform != 'win32' and self._close.alive:
            unlock_file(self._file)
            self._close()

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
