"""Episode results: a record of each ended episode, one JSON line each."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from internutopia.core.config import Config
from internutopia.core.episodes.queue import Episode
from internutopia.core.episodes.results_file import ResultsFile
from internutopia.core.episodes.resume import read_done


@dataclass(frozen=True)
class EpisodeRecord:
    """The result of one ended episode, field by field as in the results file; see `docs/long_runs.md`."""

    episode_id: int
    task_index: int
    task_name: str
    task: str | None
    env_id: int
    steps: int
    terminated: bool
    truncated: bool
    metrics: dict[str, Any]
    error: str | None

    @classmethod
    def of(
        cls,
        episode: Episode,
        task: str | None,
        env_id: int,
        steps: int,
        terminated: bool,
        truncated: bool,
        metrics: dict[str, Any],
        error: str | None,
    ) -> EpisodeRecord:
        """The record of an episode of a type of task that ended in an env."""
        name = episode.task_name
        return cls(episode.id, episode.task_index, name, task, env_id, steps, terminated, truncated, metrics, error)


class Results(Protocol):
    """Where the results of episodes go. What was written lasts when `flush` returns."""

    def write(self, record: EpisodeRecord) -> None:
        """Take the result of one episode."""
        ...

    def flush(self) -> None:
        """Make what was written last. Called at the end of each step in which an episode ended."""
        ...

    def start_over(self, metrics_only: bool = False) -> None:
        """Remove the results of earlier runs, and keep other runs from adding theirs. OSError if one does.

        With `metrics_only`, results that follow are an episode's metrics by name, as in 2.x.
        """
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class ResultsWriter:
    """Writes one line per ended episode where `config.metrics_save_path` says.

    What cannot be written is kept and tried again with the next `flush`, and when the writer is closed.

    Args:
        config: the run. With `resume` its results file is locked against other runs and says what is done.

    Attributes:
        done: ids of the episodes whose results were there before.

    Raises:
        OSError: the file cannot be written, or another run writes to it; the path is named.
        ValueError: the file to resume from holds something else than results of this config.
    """

    def __init__(self, config: Config):
        path = config.results_file
        self.done: frozenset[int] = frozenset()
        self._console = config.metrics_save_path == 'console'
        self._file = None if path is None else ResultsFile(path, exclusive=config.resume)
        self._metrics_only = False
        self._pending = b''
        if config.resume and self._file is not None:
            try:
                self.done, size = read_done(self._file.path, config)
                self._file.cut_torn_line(size)
            except BaseException:
                self._file.close()
                raise

    def write(self, record: EpisodeRecord) -> None:
        """Take the result of one episode; the console gets it at once, a file with `flush`."""
        if self._file is None and not self._console:
            return
        shown = plain(record.metrics if self._metrics_only else vars(record))
        if self._console:
            print(json.dumps(shown, allow_nan=False, indent=4 if self._metrics_only else None), flush=True)
        else:
            self._pending += json.dumps(shown, allow_nan=False).encode() + b'\n'

    def flush(self) -> None:
        """Make what was written last. OSError if there is no room for it."""
        if self._file is None or not self._pending:
            return
        try:
            self._file.append(self._pending)
        except OSError as error:
            raise OSError(
                error.errno,
                f'results cannot be written to metrics_save_path ({error.strerror}): make room and go on, the next '
                'step or close() tries again; or end, and run the episodes without a result with resume=True',
                self._file.path,
            ) from error
        self._pending = b''

    def start_over(self, metrics_only: bool = False) -> None:
        """Empty the file and be the only one who writes to it; see `Results`. OSError if another run writes to it."""
        self._metrics_only = metrics_only
        if self._file is not None:
            self._file.start_over()

    def close(self) -> None:
        """Close the file. OSError if there is no room for what was not written yet."""
        file = self._file
        if file is not None:
            try:
                self.flush()
            finally:
                self._file = None
                file.close()


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
