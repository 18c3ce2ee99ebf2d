"""A file of results: whole lines that last, and no second run that writes between them."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from internutopia.util import log
from internutopia.util.file_lock import PATIENCE, lock_file, unlock_file

LINE_START = b'{"episode_id": '
"""How every line begins; what begins otherwise was written by somebody else and is never cut off."""

_TAKEN = 'metrics_save_path: another run writes to this file; wait for its end (or close the Env), or use another file'


class ResultsFile:
    """Lines appended to a file. A line lasts when `append` returns, even if the machine loses its power then.

    A crash half-way through a write leaves a torn last line. It is cut off when the file is opened again, unless other
    writers share it; `exclusive` leaves that to the caller, who calls `cut_torn_line`.

    Pipes and devices are written to as well; there is nothing to lock, to cut off or to wait for.

    Attributes:
        regular: whether it is a file, not a pipe or device.

    Args:
        path: the file; made if it is missing, else appended to.
        exclusive: be the only writer. Otherwise several may share the file, but none of them with an exclusive one.

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
        """Write lines, each with its newline, and wait until they last.

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
        """Cut off what is behind so many bytes, the whole lines; while nobody else writes."""
        if size < self._size():
            log.warning('%s: the last line is incomplete, from a run that was killed: cut off', self.path)
            self._file.truncate(size)

    def start_over(self) -> None:
        """Empty the file and be its only writer from now on. OSError if others share it."""
        self._lock(True, PATIENCE)
        self._exclusive = True
        if self.regular:
            self._file.truncate(0)

    def close(self) -> None:
        """Give the file back."""
        if self.regular and not self._file.closed:
            unlock_file(self._file.fileno())
        self._file.close()

    @property
    def empty(self) -> bool:
        """Whether nothing is in it; so is a pipe or device."""
        return not self._size()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _ends_with_newline(self) -> bool:
        if not self._size():
            return True
        self._file.seek(-1, os.SEEK_END)
        return self._file.read(1) == b'\n'

    def _mend(self) -> None:
        """Cut off a torn last line, unless others share the file: one of them may be about to write the rest of it."""
        with self._alone() as alone:
            if alone and not self._ends_with_newline():
                with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                    start = text.rfind(b'\n') + 1
                    torn = is_torn(text[start:])
                if torn:
                    self.cut_torn_line(start)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether no other writer has the file open; it stays so in the context."""
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
        """Take a lock in place of the one held. BlockingIOError if it is not to be had within so many seconds."""
        if self.regular:
            lock_file(self._file.fileno(), self.path, exclusive, patience, _TAKEN, 'run')

    def _keep_name(self) -> None:
        """Make the name of a new file last, as its contents do."""
        with suppress(OSError):  # where folders cannot be synchronized, they need not be
            folder = os.open(os.path.dirname(self.path) or '.', os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def is_torn(line: bytes) -> bool:
    """Whether a line that is incomplete is the beginning of a line of results, or of zeros of a power failure."""
    return line.startswith(LINE_START) or LINE_START.startswith(line.rstrip(b'\0'))
