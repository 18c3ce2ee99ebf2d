"""Recorder: writes the episodes of a run to a dataset while a program steps its envs.

It looks and changes nothing: states and results are the same, to the bit, with and without it. An episode is on the
disk before its result is, so a run that is killed and resumed has recorded every episode that has a result.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from internutopia.core.config import Config
from internutopia.core.util import did_you_mean
from internutopia.core.util.install import install_hint
from internutopia.recording.dataset import FORMATS, Dataset, Format, Only
from internutopia.recording.export import export
from internutopia.recording.sources import check_local, source_of
from internutopia.recording.streams import CODEC, PART, check_codec
from internutopia.recording.watcher import EpisodeWatcher

_LIBRARIES = {'lerobot': 'pyarrow', 'hdf5': 'h5py'}
_ROUNDING = 1e-6


class Recorder:
    """Records envs into a folder; a context manager.

    Episodes that end are written at once; tables and videos of the format are made from them by `close`. An episode
    that is reset before its end, or under way at `close`, is left out unless it was marked.

    Args:
        folder: where to; made if it is not there.
        config: of the run; None means that of the envs.
        format: of tables and pictures.
        only: which episodes; with `'success'`, those that were marked as one, or whose metric `success` says so.
        fps: frames per second; None means the whole frames per second that the steps allow.
        resume: go on with the dataset in the folder.
        codec: encoder of videos, a name of FFmpeg's.

    Raises:
        ValueError: the folder holds something else, or, with `resume`, a dataset of another config or with other
            arguments; videos cannot be encoded.
        OSError: the folder cannot be written.
        NotImplementedError: the run is distributed.
        ImportError: the extra is missing; the message has the command that installs it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        config: Config | None = None,
        format: Format = 'lerobot',
        only: Only = 'all',
        fps: int | None = None,
        resume: bool = False,
        codec: str = CODEC,
    ):
        if format not in FORMATS:
            raise ValueError(f'format={format!r}: {did_you_mean(format, FORMATS)}')
        if only not in ('all', 'success'):
            raise ValueError(f"only={only!r}: expected 'all' or 'success'")
        if fps is not None and (isinstance(fps, bool) or not isinstance(fps, int) or fps < 1):
            raise ValueError(f'fps={fps!r}: expected whole frames per second, 1 or more')
        if config is not None:
            check_local(config)
        _check_libraries(format, codec)
        self.folder = Path(folder)
        self._config, self._format, self._only, self._fps = config, format, only, fps
        self._codec, self._resume = codec, resume
        _check_folder(self.folder, resume)
        if config is not None and resume and Dataset.exists(self.folder):
            Dataset(self.folder).check_config(config)
        self._watcher: EpisodeWatcher | None = None

    def attach(self, env: Any) -> None:
        """Record envs from now on: an `Env`, a `gym_env.Env` or an `rl.VectorEnv`. One call for each recorder.

        Raises:
            TypeError: it is none of these.
            NotImplementedError: the envs are in other processes, or on a device.
            ValueError: the steps allow fewer frames per second; the dataset in the folder has others.
        """
        if self._watcher is not None:
            raise ValueError('attach: this recorder records envs already')
        source = source_of(env)
        rate = 1.0 / source.step_dt
        fps = math.floor(rate + _ROUNDING) if self._fps is None else self._fps
        if not 1 <= fps <= rate + _ROUNDING:
            raise ValueError(
                f'fps={fps}: the envs make {rate:g} steps per second, so that there can be from 1 to '
                f'{math.floor(rate + _ROUNDING)} whole frames per second'
            )
        config = self._config or source.config
        facts = {'format': self._format, 'fps': fps, 'step_rate': rate, 'api': source.api, 'only': self._only}
        if self._resume and Dataset.exists(self.folder):
            dataset = Dataset(self.folder)
            dataset.check_config(config)
            different = [name for name, value in facts.items() if dataset.facts[name] != value]
            if different:
                name = different[0]
                raise ValueError(
                    f'{self.folder} holds a dataset with {name}={dataset.facts[name]!r}, not {facts[name]!r}: go on '
                    'with the same, or record to another folder'
                )
            for leftover in dataset.episodes_folder.glob(f'*{PART}'):
                leftover.unlink()
        else:
            dataset = Dataset.create(self.folder, config, facts)
        self._watcher = EpisodeWatcher(source, dataset, self._codec)

    def mark(self, env_id: int, success: bool) -> None:
        """Say whether the episode of an env is a success; it is kept even if it is reset before its end.

        ValueError if the env has no episode that is recorded.
        """
        self._attached('mark').mark(env_id, success)

    def discard(self, env_id: int) -> None:
        """Leave the episode of an env out. ValueError if it has none that is recorded."""
        self._attached('discard').discard(env_id)

    def close(self) -> None:
        """Stop recording, and make tables, videos and the data card; twice is fine.

        OSError if they cannot be written; the episodes are in the folder, and `internutopia convert` makes them.
        """
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
            export(Dataset(self.folder))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _attached(self, call: str) -> EpisodeWatcher:
        if self._watcher is None:
            raise ValueError(f'{call}: attach the recorder to envs first')
        return self._watcher


def _check_libraries(format: Format, codec: str) -> None:
    import importlib.util

    library = _LIBRARIES[format]
    if importlib.util.find_spec(library) is None:
        raise ImportError(f'--format {format} needs {library}: {install_hint("record")}')
    if format == 'lerobot':
        check_codec(codec)


def _check_folder(folder: Path, resume: bool) -> None:
    """Make a folder that can be written, or ValueError if it holds something that recording would mix with."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / '.probe'
    probe.write_bytes(b'')
    probe.unlink()
    if Dataset.exists(folder):
        if not resume:
            raise ValueError(f'{folder} holds a dataset: go on with it with --resume, or record to another folder')
    elif any(folder.iterdir()):
        raise ValueError(f'{folder} holds other files: record to a folder of its own')
