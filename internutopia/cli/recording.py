"""Options `--record`, `--format`, `--only` and `--record-fps` of commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from internutopia.core.config import Config
    from internutopia.recording import Recorder
    from internutopia.recording.dataset import Format, Only


@dataclass(frozen=True)
class RecordOptions:
    """What the command line says of a dataset; `folder` is None if none is recorded."""

    folder: Path | None
    format: Format = 'lerobot'
    only: Only = 'all'
    fps: int | None = None

    @property
    def arguments(self) -> list[str]:
        """The options as words of a command."""
        if self.folder is None:
            return []
        rate = [] if self.fps is None else ['--record-fps', str(self.fps)]
        return ['--record', str(self.folder), '--format', self.format, '--only', self.only, *rate]

    def check(self) -> None:
        """ValueError if one is given without `--record`."""
        if self.folder is None and self != RecordOptions(None):
            raise ValueError('--format, --only and --record-fps are options of a dataset: they need --record FOLDER')

    def recorder(self, config: Config) -> Recorder:
        """The recorder of a run, which goes on with the dataset if the run is resumed.

        ValueError also for a run that cannot be recorded; other errors are those of `Recorder`.
        """
        from internutopia.recording import Recorder

        assert self.folder is not None
        with _refusing():
            return Recorder(self.folder, config, self.format, self.only, self.fps, bool(config.resume))

    def attached(self, envs: Any) -> AbstractContextManager[Any]:
        """A context in which envs are recorded, if they are; errors as those of `recorder`."""
        from internutopia.recording import Recorder

        if self.folder is None:
            return nullcontext()
        recorder = Recorder(self.folder, None, self.format, self.only, self.fps)
        with _refusing():
            recorder.attach(envs)
        return recorder


@contextmanager
def _refusing() -> Iterator[None]:
    """Context in which what cannot be recorded is a mistake in options."""
    try:
        yield
    except NotImplementedError as error:
        raise ValueError(f'--record: {error}') from error
