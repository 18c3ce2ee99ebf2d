"""Episode watcher: follows the steps of envs and writes each episode that is over.

It is attached to the envs as a `StepWatcher`, and wraps the runner's `Results`, which receive the result of an episode
when that is on the disk.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.episodes.queue import EpisodeRecord, plain
from internutopia.core.episodes.results import Results
from internutopia.core.runner.env_group import EnvSlot
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.engines.base import PhysicsState
from internutopia.recording.dataset import Dataset
from internutopia.recording.episode_writer import ACTION, FRAME, OBSERVATION, REWARD, STATE, EpisodeWriter
from internutopia.recording.sources import ListSource, StepSource
from internutopia.recording.step_buffer import Rows, StepBuffer
from internutopia.util.log import warn_once

_ROUNDING = 1e-6  # of a step


class EpisodeWatcher:
    """Recorder of the episodes of a step source into a dataset, from now on until `stop`."""

    def __init__(self, source: StepSource, dataset: Dataset, codec: str):
        self._source, self._dataset, self._codec = source, dataset, codec
        self._runner = source.runner
        self._writers: dict[int, tuple[EnvSlot, EpisodeWriter]] = {}
        self._marks: dict[int, bool] = {}
        self._discarded: set[int] = set()
        self._records: dict[int, EpisodeRecord] = {}  # of episodes that ended in the step that is made
        self._held: list[EpisodeRecord] = []  # results that wait until their episodes are on the disk
        self._buffer = StepBuffer(self._runner.env_num)
        self._steps_per_frame = dataset.facts['step_rate'] / dataset.facts['fps']
        self._steps = np.zeros(self._runner.env_num, np.int64)  # of the episodes that are recorded
        self._frames = np.zeros(self._runner.env_num, np.int64)
        self._models: list[PhysicsState | None] = [None] * self._runner.env_num
        self._stepping: NDArray[np.intp] | None = None  # envs whose step is under way
        self._due = np.zeros(0, np.intp)  # those for which it begins with a frame
        self._encoder = ThreadPoolExecutor(thread_name_prefix='recording')
        self._pictures: list[tuple[int, Future[None]]] = []  # that are being written, with their envs
        self._unsaved: list[tuple[EpisodeWriter, dict[str, Any]]] = []
        self._results: Results = self._runner.results
        self._begin()
        self._runner.results = self
        self._runner.watchers.append(self)

    def stop(self) -> None:
        """Stop recording, and write what was marked."""
        if self not in self._runner.watchers:
            return
        self._runner.watchers.remove(self)
        self._runner.results = self._results
        for env_id in list(self._writers):
            self._finish(env_id, None)
        self._save()
        self._encoder.shutdown()

    def mark(self, env_id: int, success: bool) -> None:
        """Mark an episode as a success or not."""
        self._check_recorded(env_id, 'mark')
        self._marks[env_id] = success
        self._discarded.discard(env_id)

    def discard(self, env_id: int) -> None:
        """Leave an episode out."""
        self._check_recorded(env_id, 'discard')
        self._discarded.add(env_id)

    # the steps, as a `StepWatcher`

    def on_step_start(self) -> None:
        """Prepare for a step, perhaps after one that could not be made."""
        self._stepping = None

    def on_commanded(self) -> None:
        """Record observations and actions once the robots were commanded, the first time if that is repeated."""
        if self._stepping is not None:
            return
        self._source.begin_step()
        env_ids = [env_id for env_id in self._runner.active() if env_id in self._writers]
        stepping = np.array(env_ids, np.intp)
        due = stepping[self._steps[stepping] + _ROUNDING >= self._frames[stepping] * self._steps_per_frame]
        self._observe(due)
        actions = self._source.actions(env_ids)
        if isinstance(actions, np.ndarray):
            self._buffer.put(ACTION, stepping, actions)
        else:
            for env_id, step, action in zip(env_ids, self._steps[stepping].tolist(), actions, strict=True):
                self._writers[env_id][1].act(step, action)
        self._stepping, self._due = stepping, due

    def on_change(self) -> None:
        """Find the episodes that begin, after a step or a reset."""
        self._begin()

    # results, as `Results`

    def write(self, record: EpisodeRecord) -> None:
        """Take the result of one episode."""
        self._records[record.env_id] = record
        self._held.append(record)

    def flush(self) -> None:
        """Write the episodes that ended in this step, then their results."""
        if self._stepping is not None:
            stepping, self._stepping = self._stepping, None
            if len(stepping):
                self._stepped(stepping)
        problem = self._written()
        for env_id, record in self._records.items():
            self._finish(env_id, record)
        self._records.clear()
        self._save()
        self._results.flush()
        if problem is not None:
            raise problem

    def start_over(self, metrics_only: bool = False) -> None:
        """Remove the results of earlier runs."""
        self._results.start_over(metrics_only)

    def close(self) -> None:
        """End the episodes that are under way: the envs are closed."""
        results = self._results
        self.stop()
        results.close()

    def _observe(self, env_ids: NDArray[np.intp]) -> None:
        """Record the observations of envs for which a frame is due."""
        if not len(env_ids):
            return
        self._buffer.put(FRAME, env_ids, np.ones(len(env_ids), bool))
        for leaf, indices, rows in self._source.observations(env_ids.tolist()):
            own = env_ids[indices]
            if isinstance(rows, np.ndarray):
                self._buffer.put(f'{OBSERVATION}{leaf}', own, rows)
                continue
            for env_id, picture in zip(own.tolist(), rows, strict=True):
                try:
                    write = self._writers[env_id][1].picture(leaf, int(self._frames[env_id]), picture)
                except OSError as error:
                    raise self._lost(env_id, error) from None
                if write is not None:
                    self._pictures.append((env_id, self._encoder.submit(write)))

    def _stepped(self, stepping: NDArray[np.intp]) -> None:
        """Record the results of a step of envs."""
        self._buffer.put(REWARD, stepping, self._source.rewards(stepping.tolist()))
        for states in self._runner.world.get_states(stepping):
            for name, rows in states.arrays.items():
                self._buffer.put(f'{STATE}{name}', states.env_ids, rows)
            for env_id, model in zip(states.env_ids.tolist(), states.models, strict=True):
                if model is not self._models[env_id]:
                    self._models[env_id] = model
                    slot, writer = self._writers[env_id]
                    writer.states.add_model(int(self._steps[env_id]) + 1, model)
                    if self._runner.scenes.loaded[env_id].model is not slot.prepared.model:
                        self._discarded.add(env_id)  # its states are of several scenes
                        warn_once('episode %d is not recorded: its scene was changed while it ran', slot.episode.id)
        self._buffer.advance(stepping)
        self._steps[stepping] += 1
        self._frames[self._due] += 1
        if self._buffer.full:
            for env_id, (_, writer) in self._writers.items():
                writer.add(self._buffer.take(env_id))
            self._buffer.clear()

    def _written(self) -> OSError | None:
        """Wait until the images are written; what went wrong first."""
        problem: OSError | None = None
        pictures, self._pictures = self._pictures, []
        wait(future for _, future in pictures)
        for env_id, future in pictures:
            try:
                future.result()
            except OSError as error:
                problem = problem or self._lost(env_id, error)
        return problem

    def _lost(self, env_id: int, error: OSError) -> OSError:
        """Return the error of an episode whose images cannot be written, and which is not recorded."""
        if env_id in self._writers:
            slot, writer = self._writers.pop(env_id)
            self._buffer.take(env_id)
            writer.discard()
            error.add_note(f'episode {slot.episode.id}, which env {env_id} runs, is not recorded')
        return error

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
        is_video = dataset.facts['format'] == 'lerobot'
        writer = EpisodeWriter(dataset.path_of(slot.episode.id), facts, dataset.facts['fps'], is_video, self._codec)
        (start,) = world.get_states(np.array([env_id], np.intp))
        for name, rows in start.arrays.items():
            writer.states.add(name, Rows(np.zeros(1, np.intp), rows.copy()))
        writer.states.add_model(0, start.models[0])
        self._models[env_id] = start.models[0]
        self._steps[env_id] = self._frames[env_id] = 0
        return writer

    def _finish(self, env_id: int, record: EpisodeRecord | None) -> None:
        """End the episode of an env; without a record it was left before its end."""
        if env_id not in self._writers:
            return
        _, writer = self._writers.pop(env_id)
        writer.add(self._buffer.take(env_id))
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
    """Return the success in the metrics of an episode: a metric `success`, or a part of one of that name."""
    if isinstance(value := metrics.get('success'), bool | int | float):
        return bool(value)
    inner = (value['success'] for value in metrics.values() if isinstance(value, dict) and 'success' in value)
    return next((bool(value) for value in inner), None)


@dataclass(frozen=True)
class WorkerRecording:
    """Factory of the recording in a process with its envs; see `Env.watch`."""

    folder: Path
    codec: str

    def __call__(self, runner: SimulatorRunner) -> Callable[[], None]:
        """Start recording; returns a function that ends it. FileNotFoundError if the folder is not here."""
        if not Dataset.exists(self.folder):
            raise FileNotFoundError(
                f'{self.folder} is not on {platform.node()}, where a worker runs: record to a folder that all machines '
                'of the cluster share'
            )
        return EpisodeWatcher(ListSource(runner), Dataset(self.folder), self.codec).stop
