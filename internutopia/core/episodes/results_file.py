"""Results file: durable whole lines, locked against other runs."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from internutopia.util import log
from internutopia.util.file_lock import PATIENCE, lock_file, unlock_file

LINE_START = b'{"episode_id": '
"""Start of every line; lines that start otherwise are of other programs and are never cut off."""

_TAKEN = 'metrics_save_path: another run writes to this file; wait for its end (or close the Env), or use another file'


class ResultsFile:
    """File to which lines are appended. A line is durable once `append` returns, even if power is lost then.

    A crash half-way through a write leaves a torn last line. It is cut off when the file is opened again, unless other
    writers share it; `exclusive` leaves that to the caller, who calls `cut_torn_line`.

    Pipes and devices are written to as well; there is nothing to lock, to cut off or to wait for.

    Attributes:
        regular: True for a file, False for a pipe or device.

    Args:
        path: the file; created if missing, else appended to.
        exclusive: True to be the only writer. Otherwise several may share the file, but not with an exclusive one.

    Raises:
        OSError: the file cannot be written, or another writer keeps it; both name the path.
    """

    def __init__(self, path: str, exclusive: bool):
        self.path = path
        self._exclusive = exclusive
        existed = os.path.exists(path)
        self.regular: bool = not existed or os.path.isfile(path)
        if exclusive and not self.regular:
            raise OSError(errno.EINVAL, 'metrics_save_path: resume needs a file, not a folder, pipe or device', path)
        try:
            self._file = open(path, 'a+b' if self.regular else 'ab', buffering=0)
        except OSError as error:
            raise OSError(error.errno, f'metrics_save_path cannot be written ({error.strerror})', path) from error
        try:
            self._lock(exclusive, PATIENCE)
            if not existed:
                self._keep_name()
            if not exclusive and not self._ends_with_newline():
                self._mend()
        except BaseException:
            self._file.close()
            raise

    def append(self, lines: bytes) -> None:
        """Write lines, each with its newline, and wait until they are durable.

        Raises:
            OSError: there is no room, or the disk fails. Nothing of the lines is in the file (if others share it, a
                part may be left, on a line of its own).
        """
        size = self._size()
        try:
            if not self._ends_with_newline():
                lines = b'\n' + lines
            while lines:
                lines = lines[self._file.write(lines) :]
            if self.regular:
                os.fsync(self._file.fileno())
        except BaseException:  # KeyboardInterrupt too: what is not reported as written shall not be there
            with self._alone() as alone:
                if alone:
                    self._file.truncate(size)
            raise

    def cut_torn_line(self, size: int) -> None:
        """Truncate the file to its whole lines, of this size [bytes], while there is no other writer."""
        if size < self._size():
            log.warning('%s: the last line is incomplete, from a run that was killed: cut off', self.path)
            self._file.truncate(size)

    def start_over(self) -> None:
        """Empty the file and become its only writer. OSError if others share it."""
        self._lock(True, PATIENCE)
        self._exclusive = True
        if self.regular:
            self._file.truncate(0)

    def close(self) -> None:
        """Close the file and release its lock."""
        if self.regular and not self._file.closed:
            unlock_file(self._file.fileno())
        self._file.close()

    @property
    def empty(self) -> bool:
        """True for an empty file, and for a pipe or device."""
        return not self._size()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _ends_with_newline(self) -> bool:
        if not self._size():
            return True
        self._file.seek(-1, os.SEEK_END)
        return self._file.read(1) == b'\n'

    def _mend(self) -> None:
        """Cut off a torn last line, unless others share the file: one of them may still write the rest of it."""
        with self._alone() as alone:
            if alone and not self._ends_with_newline():
                with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                    start = text.rfind(b'\n') + 1
                    torn = is_torn(text[start:])
                if torn:
                    self.cut_torn_line(start)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Yield True if no other writer has the file open, and keep others out for the context."""
        if self._exclusive or not self.regular:
            yield self.regular
            return
        try:
            self._lock(True)
            alone = True
        except BlockingIOError:
            alone = False
        try:
            yield alone
        finally:
            self._lock(False, PATIENCE)

    def _lock(self, exclusive: bool, patience: float = 0.0) -> None:
        """Take a lock in place of the one held. BlockingIOError if that takes longer than `patience` [s]."""
        if self.regular:
            lock_file(self._file.fileno(), self.path, exclusive, patience, _TAKEN, 'run')

    def _keep_name(self) -> None:
        """Make the directory entry of a new file durable, as its contents are."""
        with suppress(OSError):  # where folders cannot be synchronized, they need not be
            folder = os.open(os.path.dirname(self.path) or '.', os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def is_torn(line: bytes) -> bool:
    """Return True if an incomplete line is the start of a line of results, or zeros left by a power failure."""
    return line.startswith(LINE_START) or LINE_START.startswith(line.rstrip(b'\0'))
