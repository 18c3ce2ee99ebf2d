"""Options `--record`, `--format`, `--only` and `--record-fps` of commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from internutopia.config import Config
    from internutopia.recording import Recorder
    from internutopia.recording.dataset import Format, Only


@dataclass(frozen=True)
class RecordOptions:
    """Options of the dataset to record; `folder` is None if none is recorded."""

    folder: Path | None
    format: Format = 'lerobot'
    only: Only = 'all'
    fps: int | None = None

    @property
    def arguments(self) -> list[str]:
        """Options as command-line arguments."""
        if self.folder is None:
            return []
        rate = [] if self.fps is None else ['--record-fps', str(self.fps)]
        return ['--record', str(self.folder), '--format', self.format, '--only', self.only, *rate]

    def check(self) -> None:
        """Check the options. ValueError if one is given without `--record`."""
        if self.folder is None and self != RecordOptions(None):
            raise ValueError('--format, --only and --record-fps are options of a dataset: they need --record FOLDER')

    def recorder(self, config: Config | None) -> Recorder | None:
        """Return the recorder of a run, if it is recorded; it goes on with the dataset if the run is resumed.

        Errors are those of `Recorder`.
        """
        from internutopia.recording import Recorder

        if self.folder is None:
            return None
        resume = config is not None and bool(config.resume)
        return Recorder(self.folder, config, self.format, self.only, self.fps, resume)

    @contextmanager
    def attached(self, envs: Any, recorder: Recorder | None = None) -> Iterator[None]:
        """Record the envs during the context, if `--record` is given. ValueError for those that cannot be."""
        recorder = recorder or self.recorder(None)
        if recorder is None:
            yield
            return
        with recorder:
            try:
                recorder.attach(envs)
            except NotImplementedError as error:
                raise ValueError(f'--record: {error}') from error
            yield
