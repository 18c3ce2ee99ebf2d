"""Options `--record`, `--format`, `--only` and `--fps` of commands."""

from __future__ import annotations

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
        rate = [] if self.fps is None else ['--fps', str(self.fps)]
        return ['--record', str(self.folder), '--format', self.format, '--only', self.only, *rate]

    def check(self) -> None:
        """ValueError if one is given without `--record`."""
        if self.folder is None and self != RecordOptions(None):
            raise ValueError('--format, --only and --fps are options of a dataset: they need --record FOLDER')

    def recorder(self, config: Config | None, resume: bool = False) -> Recorder:
        """The recorder of a run; errors are those of `Recorder`."""
        from internutopia.recording import Recorder

        assert self.folder is not None
        return Recorder(self.folder, config, self.format, self.only, self.fps, resume)


def attach(recorder: Recorder, env: Any) -> Recorder:
    """Record envs. ValueError also for those that cannot be; other errors are those of `Recorder.attach`."""
    try:
        recorder.attach(env)
    except NotImplementedError as error:
        raise ValueError(f'--record: {error}') from error
    return recorder
