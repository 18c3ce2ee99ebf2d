"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PART = '.part'
"""Suffix of files that are being written; what a killed process left has it."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a draft next to `path` to write to, which takes its place afterwards; after an error it is deleted.

    Each writer has a draft of its own, so the last one wins. A link stays: the file that it leads to is replaced.
    Permissions stay as well. An OSError names the file, not the draft.
    """
    file = Path(os.path.realpath(path))
    draft = file.with_name(f'{file.name}.{uuid.uuid4().hex[:8]}{PART}')
    try:
        yield draft
        if file.exists():
            shutil.copymode(file, draft)
        os.replace(draft, file)
    except OSError as error:
        if error.filename in (None, os.fspath(draft)):
            error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path, values: Any) -> None:
    """Write a JSON file whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(json.dumps(values, indent=2) + '\n', encoding='utf-8')
