"""Files of assets: bounds, by the `AssetLimitsCfg` in force, checked before a reader opens a file; XML; errors.

Readers of other projects crash or take forever on files that are too large, nested too deep or no files at all. Any
error of a reader of a broken file becomes a ValueError with the file and the reason.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import mujoco

from internutopia.config.simulator import AssetLimitsCfg

_limits: ContextVar[AssetLimitsCfg] = ContextVar('asset_limits', default=AssetLimitsCfg())  # noqa: B039 - never changed


@contextmanager
def limited_by(limits: AssetLimitsCfg) -> Iterator[None]:
    """Read files under these limits instead of the default ones, in this block and thread."""
    token = _limits.set(limits)
    try:
        yield
    finally:
        _limits.reset(token)


def limits() -> AssetLimitsCfg:
    """Return the limits in force."""
    return _limits.get()


def check_bound(where: str | os.PathLike[str], what: str, value: float, field: str) -> None:
    """Raise ValueError if a figure of a file exceeds the limit: 'room.usda: 1200 nested prims; at most ...'."""
    most = getattr(_limits.get(), field)
    if value > most:
        raise ValueError(
            f'{os.fspath(where)}: {value:,.0f} {what}; at most {most:,} are read (SimConfig.asset_limits.{field})'
        )


def check_file(file: str | os.PathLike[str], field: str = 'file_size') -> None:
    """Raise ValueError for anything but a regular file (a folder, a device, a pipe), or a file too large."""
    try:
        status = os.stat(file)
    except OSError:
        return  # missing: its reader reports it
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f'{os.fspath(file)}: not a regular file (a folder, device, pipe or socket)')
    check_bound(file, 'bytes', status.st_size, field)


class NestingBounds:
    """Counter of the elements of an XML document while it is read; ValueError at the first one too many or too deep."""

    def __init__(self, file: str | os.PathLike[str]):
        self._file, self._limits = file, _limits.get()
        self._depth = self._count = 0

    def begin(self) -> None:
        """Count the start of an element."""
        self._depth += 1
        self._count += 1
        if self._depth > self._limits.depth:
            check_bound(self._file, 'nested elements', self._depth, 'depth')
        if self._count > self._limits.elements:
            check_bound(self._file, 'elements', self._count, 'elements')

    def end(self) -> None:
        """Count the end of an element."""
        self._depth -= 1


# Of Python, of the readers that we call, and of our own where a file is not what they expect. Syntax errors are those
# of XML; USD, MuJoCo (where it catches unknown errors) and too deep recursions raise kinds of RuntimeError.
BROKEN = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    ValueError,
    mujoco.FatalError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors that readers raise for a broken file; a missing file is an OSError."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of reading a file into a ValueError that names it; an OSError (nothing there) stays one."""
    try:
        yield
    except BROKEN as error:
        if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
            if str(error).startswith(str(path)):
                raise
            raise ValueError(f'{path}: {error}') from error
        reason = '; '.join(str(getattr(part, 'commentary', part)) for part in error.args)  # USD's have parts
        raise ValueError(f'{path}: cannot be read ({type(error).__name__}): {reason or "no reason given"}') from error


def read_xml(path: Path) -> Element:
    """Read the root element of a file. ValueError, naming the file, if it is not XML, too large or nested too deep."""
    check_file(path, 'text_size')
    bounds, parser = NestingBounds(path), ElementTree.iterparse(path, ('start', 'end'))
    root: Element | None = None
    try:
        for event, element in parser:
            if event == 'end':
                bounds.end()
                continue
            bounds.begin()
            root = element if root is None else root
    except (ElementTree.ParseError, LookupError, UnicodeError) as error:
        raise ValueError(f'{path}: not an XML document: {error}') from error
    assert root is not None  # the parser takes nothing without an element
    return root
