"""Results file: durable whole lines, locked against other runs; the episodes in it, with which a run continues."""

from __future__ import annotations

import errno
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal

from internutopia.core.episodes.config_digest import ConfigDigest, config_file, saved_config
from internutopia.core.episodes.queue import from_values
from internutopia.util import log
from internutopia.util.cache_folder import PATIENCE, lock_file, unlock_file

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
                part may be left, on its own line).
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
            log.warning('%s: the last line is incomplete, from a run that was killed; it is removed', self.path)
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


_DAMAGED = 'The line is damaged, or was not written by a run: delete it, and its episode is run again'
_ELSEWHERE = 'set metrics_save_path to another file'


def read_done(path: str, config: ConfigDigest, resume: Literal[True, 'force']) -> tuple[frozenset[int], int]:
    """Read the results of an earlier part of the run, which may have had fewer tasks: the first ones.

    Args:
        path: the results file.
        config: digest of the config of the run that is resumed.
        resume: with `'force'`, results of another config count as done as well, with a warning.

    Returns:
        The ids of the episodes that are done, and the size of the file without a torn last line [bytes].

    Raises:
        ValueError: a line is damaged, an episode has two, or a result is of another config, unless forced; file, line
            and the differences are named.
    """
    lines: dict[int, int] = {}  # line number by episode id
    others: dict[str | None, tuple[int, int]] = {}  # of each other config: first line and number of lines
    size = 0
    with open(path, 'rb') as file:
        end = os.fstat(file.fileno()).st_size
        for number, line in enumerate(file, 1):
            values = _parse(line)
            if values is None and is_torn(line) and size + len(line) == end:
                break
            try:
                result = from_values(line[:80] if values is None else values)
            except ValueError as mistake:
                raise ValueError(f'{path}, line {number}: {mistake}. {_DAMAGED}; or {_ELSEWHERE}') from None
            size += len(line)
            if result.episode_id in lines:
                raise ValueError(
                    f'{path}, line {number}: a second result of episode {result.episode_id}, after line '
                    f'{lines[result.episode_id]}. Delete the wrong one, or {_ELSEWHERE}'
                )
            lines[result.episode_id] = number
            if result.config != config.digest:
                first, count = others.get(result.config, (number, 0))
                others[result.config] = first, count + 1
    for digest, (first, count) in others.items():
        older = None if digest is None else saved_config(path, digest)
        if older is not None and config.extends(older):
            continue
        more = f' and {count - 1} more' if count > 1 else ''
        text = f'{path}, line {first}{more}: {_difference(path, digest, older, config)}'
        if resume != 'force':
            raise ValueError(
                f'{text}. Resume with the config of that run, or {_ELSEWHERE}; '
                "resume='force' (internutopia run --resume=force) continues anyway, and mixes results of both"
            )
        log.warning("resume='force': %s", text)
    return frozenset(lines), size


def _parse(line: bytes) -> Any:
    """Parse a line; None if it is not complete."""
    try:
        return json.loads(line) if line.endswith(b'\n') else None
    except (ValueError, RecursionError):
        return None


def _difference(path: str, digest: str | None, older: Mapping[str, Any] | None, config: ConfigDigest) -> str:
    """Describe how a result of another config differs from those of this one."""
    if digest is None:
        return 'a result without its config, of an older version'
    if older is None:
        return f'a result of another config; {config_file(path)}, which says of which, is missing or damaged'
    return f'a result of another config: {config.differences(older)}'
