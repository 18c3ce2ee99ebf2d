"""Recorder: writes the episodes of a run to a dataset while a program steps its envs.

It changes nothing: states and results are the same, bit for bit, with and without it. An episode is on the
disk before its result is, so a run that is killed and resumed has recorded every episode that has a result.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from internutopia.config import Config
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.vec_env import Env
from internutopia.evaluation.arm_mapper import ArmForm
from internutopia.recording.dataset import FORMATS, Dataset, FolderLock, Format, Only
from internutopia.recording.export import export
from internutopia.recording.sources import Api, source_of
from internutopia.recording.streams import CODEC, check_codec
from internutopia.recording.watcher import EpisodeWatcher, WorkerRecording
from internutopia.util import did_you_mean
from internutopia.util.imports import install_hint

_LIBRARIES = {'lerobot': 'pyarrow', 'hdf5': 'h5py'}
_ROUNDING = 1e-6


class Recorder:
    """Recorder of envs into a folder; a context manager.

    Episodes that end are written at once; tables and videos of the format are made from them by `close`. An episode
    that is reset before its end, or under way at `close`, is left out unless it was marked; one whose scene was changed
    while it ran (objects or joints that came or went) is left out with a warning.

    Args:
        folder: where to; made if it is not there.
        config: of the run; None means that of the envs.
        format: of tables and images.
        only: which episodes; with `'success'`, those that were marked as one, or whose metric `success` is true.
        fps: frames per second; None means the whole frames per second that the steps allow.
        resume: go on with the dataset in the folder.
        codec: encoder of videos, a name of FFmpeg's.
        form: arm and mapping in whose form LeRobot's tables are made; None: as it was seen and commanded.

    Raises:
        ValueError: the folder holds something else, or, with `resume`, a dataset of another config or with other
            arguments; videos cannot be encoded.
        OSError: the folder cannot be written, or another recorder writes to it.
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
        form: ArmForm | None = None,
    ):
        if format not in FORMATS:
            raise ValueError(f'format={format!r}: {did_you_mean(format, FORMATS)}')
        if only not in ('all', 'success'):
            raise ValueError(f"only={only!r}: expected 'all' or 'success'")
        if fps is not None and (isinstance(fps, bool) or not isinstance(fps, int) or fps < 1):
            raise ValueError(f'fps={fps!r}: expected whole frames per second, 1 or more')
        if importlib.util.find_spec(_LIBRARIES[format]) is None:
            raise ImportError(f'--format {format} needs {_LIBRARIES[format]}: {install_hint("record")}')
        if format == 'lerobot':
            check_codec(codec)
        self.folder = Path(folder)
        self._config, self._format, self._only, self._fps = config, format, only, fps
        self._codec, self._resume, self._form = codec, resume, form
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(self.folder)
        try:
            _check_folder(self.folder, resume)
            if config is not None and resume and Dataset.exists(self.folder):
                Dataset(self.folder).check_config(config)
        except BaseException:
            self._lock.release()
            raise
        self._watcher: EpisodeWatcher | None = None
        self._stop: Callable[[], None] | None = None

    def attach(self, env: Any) -> None:
        """Record envs from now on: an `Env`, a `gym_env.Env` or an `rl.VectorEnv`. One call for each recorder.

        Raises:
            TypeError: it is none of these.
            NotImplementedError: the envs are on a device, or those of an `rl.VectorEnv` in other processes.
            ValueError: the steps allow fewer frames per second; the dataset in the folder has others; an episode that
                it has runs again.
        """
        if self._stop is not None:
            raise ValueError('attach: this recorder is already attached')
        if isinstance(env, Env) and env.is_remote:
            config = env.config
            dataset = self._dataset(config, 'list', config.simulator.substeps * env.get_dt())
            _leave_recorded(dataset, config, env.task_config_manager, env.active_episodes.values())
            self._stop = env.watch(WorkerRecording(self.folder.resolve(), self._codec))
            return
        source = source_of(env)
        runner = source.runner
        dataset = self._dataset(source.config, source.api, source.step_dt)
        _leave_recorded(dataset, source.config, runner.queue, [s.episode for s in runner.slots(range(runner.env_num))])
        self._watcher = EpisodeWatcher(source, dataset, self._codec)
        self._stop = self._watcher.stop

    def mark(self, env_id: int, success: bool) -> None:
        """Mark the episode of an env as a success or not; it is kept even if it is reset before its end.

        ValueError if the env has no episode that is recorded, NotImplementedError if envs are in other processes.
        """
        self._attached('mark').mark(env_id, success)

    def discard(self, env_id: int) -> None:
        """Leave the episode of an env out; errors as those of `mark`."""
        self._attached('discard').discard(env_id)

    def close(self) -> None:
        """Stop recording, and make tables, videos and the data card; may be called twice.

        OSError if they cannot be written; the episodes are in the folder, and `internutopia convert` makes them.
        """
        stop, self._stop, self._watcher = self._stop, None, None
        try:
            if stop is not None:
                stop()
                dataset = Dataset(self.folder)
                dataset.remove_leftovers()  # of workers that died
                export(dataset)
        finally:
            self._lock.release()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _dataset(self, config: Config, api: Api, step_dt: float) -> Dataset:
        """Return the dataset that envs are recorded to. ValueError if it has other facts than theirs."""
        rate = 1.0 / step_dt
        fps = math.floor(rate + _ROUNDING) if self._fps is None else self._fps
        if not 1 <= fps <= rate + _ROUNDING:
            raise ValueError(
                f'fps={fps}: the envs make {rate:g} steps per second, so that there can be from 1 to '
                f'{math.floor(rate + _ROUNDING)} whole frames per second'
            )
        config = self._config or config
        facts = {'format': self._format, 'fps': fps, 'step_rate': rate, 'api': api, 'only': self._only}
        if self._form is not None:
            facts['form'] = {'arm': asdict(self._form.arm), 'mapping': self._form.mapping.model_dump(mode='json')}
        if not (self._resume and Dataset.exists(self.folder)):
            return Dataset.create(self.folder, config, facts)
        dataset = Dataset(self.folder)
        dataset.check_config(config)
        different = [name for name, value in facts.items() if dataset.facts.get(name) != value]
        if different:
            name = different[0]
            raise ValueError(
                f'{self.folder} holds a dataset with {name}={dataset.facts.get(name)!r}, not {facts[name]!r}: go on '
                'with the same, or record to another folder'
            )
        dataset.mend_config(config)
        dataset.remove_leftovers()
        return dataset

    def _attached(self, call: str) -> EpisodeWatcher:
        if self._watcher is not None:
            return self._watcher
        if self._stop is not None:
            raise NotImplementedError(f'{call}: the envs of this run are in other processes, and cannot be marked here')
        raise ValueError(f'{call}: attach the recorder to envs first')


def _leave_recorded(dataset: Dataset, config: Config, queue: EpisodeQueue, running: Iterable[Episode]) -> None:
    """Leave out the episodes that a dataset has. ValueError if one of them runs already."""
    if config.resume:  # the results file lists what is done
        return
    recorded = set(dataset.episode_ids)
    queue.skip({*queue.done, *recorded})
    if again := sorted(recorded & {episode.id for episode in running}):
        raise ValueError(
            f'attach: episode {again[0]} was recorded before, and runs again: attach the recorder before the first '
            'reset'
        )


def _check_folder(folder: Path, resume: bool) -> None:
    """Raise OSError if a folder cannot be written, ValueError if it holds something that recording would mix with."""
    probe = folder / '.probe'
    probe.write_bytes(b'')
    probe.unlink()
    if Dataset.exists(folder):
        if not resume:
            raise ValueError(f'{folder} already has a dataset: record to another folder, or continue it with --resume')
    elif any(folder.iterdir()):
        raise ValueError(f'{folder} contains other files: record to a separate folder')
