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
from internutopia.core.episodes.record import EpisodeRecord, plain
from internutopia.core.episodes.results import Results
from internutopia.core.runner.simulator import EnvSlot
from internutopia.core.util import did_you_mean
from internutopia.core.util.install import install_hint
from internutopia.core.util.log import warn_once
from internutopia.recording.dataset import FORMATS, Dataset, Format, Only
from internutopia.recording.episode_file import EpisodeWriter
from internutopia.recording.sources import StepSource, source_of
from internutopia.recording.streams import CODEC, PART, check_codec

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
        _check_libraries(format, codec)
        self.folder = Path(folder)
        self._config, self._format, self._only, self._fps = config, format, only, fps
        self._codec, self._resume = codec, resume
        _check_folder(self.folder, resume)
        if config is not None and resume and Dataset.exists(self.folder):
            Dataset(self.folder).check_config(config)
        self._recording: _Recording | None = None

    def attach(self, env: Any) -> None:
        """Record envs from now on: an `Env`, a `gym_env.Env` or an `rl.VectorEnv`. One call for each recorder.

        Raises:
            TypeError: it is none of these.
            NotImplementedError: the envs are in other processes, or on a device.
            ValueError: the steps allow fewer frames per second; the dataset in the folder has others.
        """
        if self._recording is not None:
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
        self._recording = _Recording(source, dataset, self._codec)

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

        OSError if they cannot be written; the episodes are in the folder, and `Dataset(folder).export()` makes them.
        """
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.stop()
            Dataset(self.folder).export()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _attached(self, call: str) -> _Recording:
        if self._recording is None:
            raise ValueError(f'{call}: attach the recorder to envs first')
        return self._recording


class _Recording:
    """The envs that are recorded; a `StepWatcher`, and the `Results` in front of the runner's own."""

    def __init__(self, source: StepSource, dataset: Dataset, codec: str):
        self._source, self._dataset, self._codec = source, dataset, codec
        self._runner = source.runner
        self._writers: dict[int, tuple[EnvSlot, EpisodeWriter]] = {}
        self._marks: dict[int, bool] = {}
        self._discarded: set[int] = set()
        self._records: dict[int, EpisodeRecord] = {}  # of episodes that ended in the step that is made
        self._held: list[EpisodeRecord] = []  # results that wait until their episodes are on the disk
        self._stepping: list[int] = []  # envs whose step is under way
        self._commanded = False
        self._unsaved: list[tuple[EpisodeWriter, dict[str, Any]]] = []
        self._results: Results = self._runner.results
        if not source.config.resume:  # else the results file says what is done
            recorded = set(dataset.episode_ids)
            self._runner.queue.skip({*self._runner.queue.done, *recorded})
            running = {slot.episode.id for slot in self._runner.slots(range(self._runner.env_num))}
            if recorded & running:
                raise ValueError(
                    f'attach: episode {min(recorded & running)} was recorded before, and runs again: attach the '
                    'recorder before the first reset'
                )
        self._begin()
        self._runner.results = self
        self._runner.watchers.append(self)

    def stop(self) -> None:
        """Look no more, and write what was marked."""
        if self not in self._runner.watchers:
            return
        self._runner.watchers.remove(self)
        self._runner.results = self._results
        for env_id in list(self._writers):
            self._finish(env_id, None)
        self._save()

    def mark(self, env_id: int, success: bool) -> None:
        """Say whether an episode is a success."""
        self._check_recorded(env_id, 'mark')
        self._marks[env_id] = success
        self._discarded.discard(env_id)

    def discard(self, env_id: int) -> None:
        """Leave an episode out."""
        self._check_recorded(env_id, 'discard')
        self._discarded.add(env_id)

    # the steps, as a `StepWatcher`

    def on_step_start(self) -> None:
        """A step is about to begin: take what the program sees."""
        self._stepping, self._commanded = [], False
        for env_id in self._runner.active():
            if env_id in self._writers:
                self._observe(env_id)
                self._stepping.append(env_id)

    def on_commanded(self) -> None:
        """The robots were commanded: take the actions, of those that are repeated the first."""
        if not self._commanded:
            self._commanded = True
            for env_id in self._stepping:
                self._writers[env_id][1].act(self._source.action(env_id))

    def on_change(self) -> None:
        """A step or a reset was made: look for episodes that begin."""
        self._begin()

    # results, as `Results`

    def write(self, record: EpisodeRecord) -> None:
        """Take the result of one episode."""
        self._records[record.env_id] = record
        self._held.append(record)

    def flush(self) -> None:
        """Write the episodes that ended in this step, then their results."""
        if self._commanded:
            self._commanded = False
            for env_id in self._stepping:
                state = self._runner.world.get_state(env_id)
                self._writers[env_id][1].stepped(state, self._source.reward(env_id))
        for env_id, record in self._records.items():
            self._finish(env_id, record)
        self._records.clear()
        self._save()
        self._results.flush()

    def start_over(self, metrics_only: bool = False) -> None:
        """Remove the results of earlier runs."""
        self._results.start_over(metrics_only)

    def close(self) -> None:
        """The envs are closed: the episodes that are under way end here."""
        results = self._results
        self.stop()
        results.close()

    def _observe(self, env_id: int) -> None:
        slot, writer = self._writers[env_id]
        try:
            writer.observe(self._source.observation(env_id))
        except OSError as error:
            self._writers.pop(env_id)
            writer.discard()
            error.add_note(f'episode {slot.episode.id}, which env {env_id} runs, is not recorded')
            raise

    def _begin(self) -> None:
        """Start recording the episodes that are new in their envs, and leave those that they replace."""
        for env_id, slot in enumerate(self._runner.envs):
            known = self._writers.get(env_id)
            if known is not None and known[0] is not slot:
                self._finish(env_id, None)
                self._save()
            if slot is not None and (known is None or known[0] is not slot) and not slot.ended and not slot.step:
                self._writers[env_id] = slot, self._writer(env_id, slot)

    def _writer(self, env_id: int, slot: EnvSlot) -> EpisodeWriter:
        world, dataset = self._runner.world, self._dataset
        task = slot.task_config
        text = getattr(task, 'instruction', None)
        facts = {
            'episode_id': slot.episode.id,
            'task_index': slot.episode.task_index,
            'env_id': env_id,
            'task': text if isinstance(text, str) and text else task.type,
            'seed': self._runner.queue.seed,
            'noise_key': int(world.noise_keys[env_id]),
            'joints': {name: list(world.articulation(name, env_id).dof_names) for name in slot.task.robots},
        }
        return EpisodeWriter(
            dataset.path_of(slot.episode.id),
            facts,
            world.get_state(env_id),
            dataset.facts['step_rate'],
            dataset.facts['fps'],
            dataset.facts['format'] == 'lerobot',
            self._codec,
        )

    def _finish(self, env_id: int, record: EpisodeRecord | None) -> None:
        """The episode of an env is over; without a record it was left before its end."""
        if env_id not in self._writers:
            return
        _, writer = self._writers.pop(env_id)
        metrics = {} if record is None else plain(record.metrics)
        success = self._marks.pop(env_id, None)
        marked = success is not None
        if success is None:
            success = _success(metrics)
        discarded = env_id in self._discarded
        self._discarded.discard(env_id)
        only_success = self._dataset.facts['only'] == 'success'
        if only_success and success is None and record is not None:
            warn_once("only='success': episodes have no metric `success` and were not marked, so none is recorded")
        if discarded or not writer.steps or (record is None and not marked) or (only_success and not success):
            return writer.discard()
        ending: dict[str, Any] = {
            'success': success,
            'terminated': record is not None and record.terminated,
            'truncated': record is None or record.truncated,
            'metrics': metrics,
            'error': None if record is None else record.error,
        }
        self._unsaved.append((writer, ending))

    def _save(self) -> None:
        """Write what ended. OSError if that fails: it is tried again the next time."""
        while self._unsaved:
            writer, ending = self._unsaved[0]
            writer.save(ending)
            self._unsaved.pop(0)
        while self._held:
            self._results.write(self._held.pop(0))

    def _check_recorded(self, env_id: int, call: str) -> None:
        if env_id not in self._writers:
            raise ValueError(f'{call}: env {env_id} has no episode that is recorded')


def _success(metrics: dict[str, Any]) -> bool | None:
    """What the metrics of an episode say: a metric `success`, or a part of one that is called so."""
    if isinstance(value := metrics.get('success'), bool | int | float):
        return bool(value)
    inner = (value['success'] for value in metrics.values() if isinstance(value, dict) and 'success' in value)
    return next((bool(value) for value in inner), None)


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


