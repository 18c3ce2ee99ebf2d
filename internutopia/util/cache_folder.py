"""Cache folder: files that the processes of a user share, written atomically; locks of files between processes.

It is below the environment variable `INTERNUTOPIA_CACHE_PATH`, or else below the user's cache folder. Its files are
named by what they were made from, so they are never out of date, and may be deleted at any time.

Files in it are trusted: models in MuJoCo's binary format crash a program, or worse, if another user has made them. So
it is made for its user alone, and refused if another user owns it or may write to it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO

from internutopia.util.log import log, warn_once

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


# those whose code makes what is kept
_FOLDERS = 'config', 'core', 'engines', 'model', 'rendering', 'util'  # that models are compiled by
_PACKAGES = ('internutopia3', 'mujoco', 'usd-core', 'numpy', 'pillow', 'coacd', 'trimesh')


class CacheFolder:
    """A folder of the cache. A read-only one is read; what cannot be written is a warning, the first time."""

    def __init__(self, name: str, what: str, capacity: int | None = None):
        """Refer to a folder that need not exist yet.

        Args:
            name: of the folder.
            what: it holds, for warnings.
            capacity: bytes of all files, beyond which those that were used least recently are deleted; None: no bound.

        Raises:
            PermissionError: it is not this user's own: another one (but root) owns it or the cache, or may write to it.
        """
        from platformdirs import user_cache_path

        root = os.environ.get('INTERNUTOPIA_CACHE_PATH')
        self._root = Path(root) if root else user_cache_path('internutopia', appauthor=False)
        self.path = self._root / name
        self._check_own()
        self._what, self._capacity = what, capacity
        self._failed = False

    def used(self, name: str) -> Path:
        """Return the file of that name, which may not exist, and mark it as used now."""
        file = self.path / name
        if self._capacity is not None:
            with suppress(OSError):  # nothing there, or not ours
                os.utime(file)
        return file

    def write(self, name: str, content: Callable[[IO[bytes]], object]) -> None:
        """Write a file by a function; a process that reads at the same time gets all or nothing."""
        if self._failed:
            return
        part = None
        try:
            self.make()
            with tempfile.NamedTemporaryFile(dir=self.path, suffix='.part', delete=False) as file:
                part = Path(file.name)
                content(file)
            os.replace(part, self.path / name)
        except OSError as error:
            self._failed = True
            if part is not None:
                part.unlink(missing_ok=True)
            what = '%s are not kept in %s: %s; INTERNUTOPIA_CACHE_PATH can name another folder'
            warn_once(what, self._what, self.path, error.strerror or error, lasting=False)
        else:
            self._shrink()

    def make(self) -> None:
        """Make the folder, for this user alone. OSError if that cannot be done, or another user owns it."""
        self._root.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self._root, self.path):
            folder.mkdir(mode=stat.S_IRWXU, exist_ok=True)
        self._check_own()  # another user may have made it meanwhile

    def _check_own(self) -> None:
        if not hasattr(os, 'geteuid'):  # Windows, where a user's folders are closed to others
            return
        for folder in (self._root, self.path):
            try:
                status = folder.stat()
            except OSError:  # nothing there, or nothing that can be read
                continue
            if status.st_uid not in (os.geteuid(), 0):
                why = f'user {status.st_uid} owns it, and this program runs as user {os.geteuid()}'
                way = f'give it to this user (chown -R {os.geteuid()} {folder})'
            elif stat.S_ISDIR(status.st_mode) and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                why = f'others may write to it (mode {stat.S_IMODE(status.st_mode):04o})'
                way = f'delete it, or, if no other user has written to it, chmod 700 {folder}'
            else:
                continue
            raise PermissionError(
                f'the cache folder {folder} is not used: {why}, so its files may be anything. Set '
                f'INTERNUTOPIA_CACHE_PATH to a folder of your own, or {way}'
            )

    def _shrink(self) -> None:
        if self._capacity is None:
            return
        files = list[tuple[int, int, str]]()
        for entry in os.scandir(self.path):
            with suppress(OSError):  # others delete, too
                status = entry.stat()
                files.append((status.st_mtime_ns, status.st_size, entry.path))
        total = 0
        for _, size, path in sorted(files, reverse=True):
            total += size
            if total > self._capacity:
                with suppress(OSError):
                    os.unlink(path)


@cache
def code_version(folders: tuple[str, ...] = _FOLDERS, packages: tuple[str, ...] = _PACKAGES) -> str:
    """Return a hash of the code that cached files depend on: folders of `internutopia`, and the packages it calls.

    No version number has to be raised when the code changes. FileNotFoundError for a folder without code.
    """
    root = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=16)
    for folder in folders:
        files = sorted((root / folder).rglob('*.py'))
        if not files:
            raise FileNotFoundError(f'{root / folder} holds no code')
        for file in files:
            digest.update(f'{file.relative_to(root).as_posix()}\n'.encode() + file.read_bytes())
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            digest.update(f'{package} {metadata.version(package)}\n'.encode())
    return digest.hexdigest()


def hashed(*parts: object) -> str:
    """Return a name for something made from parts that have a `repr` of their own."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()
