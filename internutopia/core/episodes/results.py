"""Episode results: a record of each ended episode, one JSON line each, at the config's path."""

from __future__ import annotations

import json
import os
from typing import Protocol

from internutopia.config import Config
from internutopia.core.episodes.config_digest import ConfigDigest
from internutopia.core.episodes.queue import EpisodeRecord, plain, to_line
from internutopia.core.episodes.results_file import ResultsFile, read_done


class Results(Protocol):
    """Destination of the results of episodes. Written results are durable once `flush` returns."""

    def write(self, record: EpisodeRecord) -> None:
        """Write the result of one episode."""
        ...

    def flush(self) -> None:
        """Make written results durable. Called at the end of each step in which an episode ended."""
        ...

    def start_over(self, metrics_only: bool = False) -> None:
        """Remove the results of earlier runs, and lock out other runs. OSError if one is writing.

        With `metrics_only`, results that follow are an episode's metrics by name, as in 2.x.
        """
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class ResultsWriter:
    """Writer of one line per ended episode to `config.metrics_save_path`.

    Results that cannot be written are kept and retried with the next `flush`, and when the writer is closed.

    Args:
        config: config of the run. With `resume` its results file is locked and read for done episodes.

    Attributes:
        done: ids of the episodes whose results were there before.

    Raises:
        OSError: the file cannot be written, or another run writes to it; the path is named.
        ValueError: the file to resume from holds damaged lines, or results of another config.
    """

    def __init__(self, config: Config):
        path = config.results_file
        self.done: frozenset[int] = frozenset()
        self._console = config.metrics_save_path == 'console'
        self._metrics_only = False
        self._pending = b''
        if path is None:
            self._file = None
            return
        self._config = ConfigDigest(config)
        self._config_saved = False
        self._absolute = os.path.abspath(path)  # wherever the process goes meanwhile
        self._file = ResultsFile(path, exclusive=bool(config.resume))
        if config.resume:
            try:
                self.done, size = read_done(path, self._config, config.resume)
                self._file.cut_torn_line(size)
            except BaseException:
                self._file.close()
                raise

    def write(self, record: EpisodeRecord) -> None:
        """Write the result of one episode: to the console at once, to a file with `flush`."""
        if self._file is None and not self._console:
            return
        if self._file is not None and not self._metrics_only:
            self._pending += to_line(record, self._config.digest)
            return
        shown = plain(record.metrics if self._metrics_only else vars(record))
        if self._console:
            print(json.dumps(shown, allow_nan=False, indent=4 if self._metrics_only else None), flush=True)
        elif self._file is not None:
            self._pending += json.dumps(shown, allow_nan=False).encode() + b'\n'

    def flush(self) -> None:
        """Make written results durable. OSError if there is no room for them."""
        if self._file is None or not self._pending:
            return
        first = self._file.empty
        try:
            self._file.append(self._pending)
        except OSError as error:
            raise OSError(
                error.errno,
                f'results cannot be written to metrics_save_path ({error.strerror}): free some space and continue; the '
                'next step or close() tries again; or end, and run the episodes without a result with resume=True',
                self._file.path,
            ) from error
        self._pending = b''
        if self._file.regular and not (self._config_saved or self._metrics_only):
            self._config.save(self._absolute, keep=not first)
            self._config_saved = True

    def start_over(self, metrics_only: bool = False) -> None:
        """Empty the file and lock it for this writer; see `Results`. OSError if another run writes to it."""
        self._metrics_only = metrics_only
        self._config_saved = False
        if self._file is not None:
            self._file.start_over()

    def close(self) -> None:
        """Close the file. OSError if there is no room for results that are not written yet."""
        file = self._file
        if file is not None:
            try:
                self.flush()
            finally:
                self._file = None
                file.close()
