"""Errors of broken files: any error of a reader becomes a ValueError with the file and the reason."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mujoco

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
