"""Results of ended episodes: one JSON line each."""

from __future__ import annotations

import json
import math
from typing import IO, Any, Protocol

import numpy as np


class Results(Protocol):
    """Where the results of episodes go. What was written lasts when `flush` returns."""

    def write(self, result: dict[str, Any]) -> None:
        """Take the result of one episode."""
        ...

    def flush(self) -> None:
        """Make what was written last. Called at the end of each step in which an episode ended."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class ResultsWriter:
    """Writes one line per ended episode.

    `path` is a file that lines are appended to, `'console'` (standard output), or `'none'`/None.
    OSError naming the path at construction if the file cannot be written.
    """

    def __init__(self, path: str | None):
        self._file: IO[str] | None = None
        self._console = path == 'console'
        if path not in (None, 'none', 'console'):
            try:
                self._file = open(path, 'a', encoding='utf-8')
            except OSError as error:
                raise OSError(error.errno, f'metrics_save_path cannot be written ({error.strerror})', path) from error

    def write(self, result: dict[str, Any]) -> None:
        """Write the result of one episode."""
        if self._file is None and not self._console:
            return
        line = json.dumps(plain(result), allow_nan=False)
        if self._console:
            print(line, flush=True)
        if self._file is not None:
            self._file.write(line + '\n')

    def flush(self) -> None:
        """See `Results.flush`."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def plain(value: Any) -> Any:
    """A value as plain JSON: numpy scalars and arrays become numbers and lists, numbers that are not finite null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return str(value)
