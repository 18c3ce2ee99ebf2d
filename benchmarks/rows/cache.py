"""Cache folder of a measurement, instead of the user's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def cache_at(folder: Path) -> Iterator[None]:
    """Keep in a folder all that is kept on disk."""
    before = os.environ.get('INTERNUTOPIA_CACHE_PATH')
    os.environ['INTERNUTOPIA_CACHE_PATH'] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ['INTERNUTOPIA_CACHE_PATH']
        else:
            os.environ['INTERNUTOPIA_CACHE_PATH'] = before
