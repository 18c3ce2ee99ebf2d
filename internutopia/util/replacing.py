"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

PART = '.part'
"""Suffix of files that are being written; what a killed process left has it."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield `<path>.part` to write to, which takes the place of `path` afterwards; after an error it is deleted."""
    part = path.with_name(path.name + PART)
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
