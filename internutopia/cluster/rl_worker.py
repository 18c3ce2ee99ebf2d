"""Worker of the array API: some of the envs of a `rl.VectorEnv`, with their physics, terms and restarts.

What learners give and get is in structured arrays with a row per env (`row_types`), which go along with a request and
its reply as they lie in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.cluster.pipe_link import PipeServer
from internutopia.cluster.worker import CollectedResults
from internutopia.cluster.worker_process import WorkerSpec, pickled, this_place, unpickled
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.queue import EpisodeRecord
from internutopia.core.episodes.results import ResultsWriter
from internutopia.core.runner.grid import env_origins
from internutopia.rl.array_runner import ArrayRunner, EnvShare, StepOutcome, tasks_of_episodes
from internutopia.rl.probe import EnvProbe
from internutopia.rl.terms.registry import add_terms
from internutopia.util.errors import EnvError, located

Request = tuple[Any, ...]
"""Name of what is to be done, and its arguments."""
STEP: Request = ('step', (), 0)
"""Request of a step in which no episode starts."""
OUTCOME = ('rewards', 'terminated', 'truncated', 'failed', 'stuck')
"""Fields of `StepOutcome` that are arrays of all envs; the first is float, the others are bool."""
STATE = ('steps', 'levels')
"""Fields of the state that learners may change, too."""

Rows = NDArray[np.void]
Bytes = NDArray[np.uint8]
"""A structured array as it lies in memory: to pickle its type takes longer than to send it."""


@dataclass(frozen=True)
class RLWorkerSpec(WorkerSpec):
    """Specification of a worker: one of those that share `total` envs.

    Attributes:
        total: number of envs of all workers.
        terms: the registered terms, pickled by Ray.
        recorded: whether the results of episodes are requested.
        row_types: those of this function.
    """

    total: int
    terms: bytes
    recorded: bool
    row_types: tuple[np.dtype[np.void], np.dtype[np.void]]


@dataclass(frozen=True)
class Start:
    """The next episode of an env: its id and the index of its task; None for both leaves the env without one."""

    env_id: int
    episode_id: int | None = None
    task_index: int | None = None


@dataclass(frozen=True)
class RLReply:
    """Reply to a request, by ids of the whole run.

    Attributes:
        rows: of the envs here; None if they are as before.
        errors: why envs were cut.
        results: of the episodes that ended.
        exception: that the request ended with.
        answer: result of a query.
    """

    rows: Bytes | None
    errors: Mapping[int, str]
    results: Sequence[EpisodeRecord]
    exception: Exception | None = None
    answer: Any = None


class RLWorker(PipeServer):
    """Envs of a distributed `VectorEnv`; lives in a Ray actor."""

    def __init__(self) -> None:  # an actor whose constructor fails could not say why
        self._results = CollectedResults()
        self._queue: _AssignedEpisodes
        self._core: ArrayRunner
        self._first = 0  # id of the first env in the whole run
        self._place = ''
        self._rows: Rows
        self._input_type: np.dtype[np.void]
        self._observed = False

    def set_up(self, spec: RLWorkerSpec, number: int) -> str:
        """Register the main process's classes and make the envs; returns the process id and address."""
        spec.set_up_process()
        add_terms(unpickled(spec.terms))
        config = spec.config
        self._first, rows = number * config.env_num, slice(number * config.env_num, (number + 1) * config.env_num)
        assert config.env_offset_size != 'auto'
        self._input_type, row_type = spec.row_types
        self._rows = np.zeros(config.env_num, row_type)
        self._queue = _AssignedEpisodes(tasks_of_episodes(config))
        results = self._results if spec.recorded else ResultsWriter(config)
        origins = env_origins(spec.total, config.env_offset_size)[rows]
        self._core = ArrayRunner(config, None, EnvShare(self._queue, results, origins))
        self._place = f'worker {number} ({this_place()}, envs {rows.start} to {rows.stop - 1})'
        return this_place()

    def exchange(self, request: Request, inputs: Bytes) -> RLReply:
        """Run a request on the envs here, with the rows of what the main process gives."""
        method, *arguments = request
        errors: Mapping[int, str] = {}
        rows = exception = answer = None
        try:
            if method == 'ask':
                answer = arguments[0](self._core, self._first)
            elif method == 'critic':
                answer = self._core.compute_critic_observations() if self._observed else None
            else:
                errors = _METHODS[method](self, inputs.view(self._input_type), *arguments)
                rows = self._rows.view(np.uint8) if self._observed or method != 'step' else None
        except Exception as error:
            exception = self._located(error)
        results = [replace(each, env_id=self._first + each.env_id) for each in self._results.take()]
        return RLReply(rows, {self._first + i: text for i, text in errors.items()}, results, exception, answer)

    def _step(self, inputs: Rows, starts: Sequence[Start], seed: int) -> Mapping[int, str]:
        core = self._core
        if not self._observed:  # no episode has ever started here
            return {}
        self._take_over(inputs)
        starting = core.select(self._assign(starts, seed))
        outcome = core.step(np.ascontiguousarray(inputs['actions']), starting)
        self._write_rows(outcome)
        self._rows['observations'] = core.compute_observations()
        return outcome.errors

    def _reset(self, inputs: Rows, starts: Sequence[Start], seed: int) -> Mapping[int, str]:
        self._take_over(inputs)
        envs = self._core.select(self._assign(starts, seed))
        self._core.reset(envs)
        self._write_rows(None)
        if self._core.started:
            if not self._observed or len(starts) == self._core.env_num:
                self._rows['observations'] = self._core.compute_observations()
            else:
                envs.put(self._rows['observations'], self._core.compute_first_observations(envs))
            self._observed = True
        return {}

    def _clear(self, inputs: Rows, env_ids: Sequence[int]) -> Mapping[int, str]:
        """Leave envs without an episode."""
        self._reset(inputs, [Start(env_id) for env_id in env_ids], self._queue.seed)
        return {}

    def _assign(self, starts: Sequence[Start], seed: int) -> NDArray[np.bool_]:
        """Queue episodes for envs, in their order; returns the mask of these envs."""
        if starts:
            self._queue.seed = seed
        self._queue.assign(starts)
        mask = np.zeros(self._core.env_num, bool)
        mask[[start.env_id - self._first for start in starts]] = True
        return mask

    def _take_over(self, inputs: Rows) -> None:
        """Apply the state that the main process gives."""
        if self._core.started:
            for name in STATE:
                getattr(self._core.state, name)[:] = inputs[name]

    def _write_rows(self, outcome: StepOutcome | None) -> None:
        """Write everything but observations to the rows."""
        core, rows = self._core, self._rows
        rows['running'], rows['episode_ids'], rows['returns'] = core.running, core.episode_ids, core.returns
        if core.started:
            for name in STATE:
                rows[name] = getattr(core.state, name)
        if outcome is not None:
            for name in OUTCOME:
                rows[name] = getattr(outcome, name)
            for name, values in outcome.metrics.items():
                rows[metric_field(name)] = values

    def _located(self, error: Exception) -> Exception:
        """Return an error with ids of the whole run in it and its origin, which can be pickled."""
        if isinstance(error, EnvError):
            env_id = self._first + error.env_id
            text = str(error.args[0]).replace(f'env {error.env_id}', f'env {env_id}', 1)
            error = type(error)(env_id, text).with_traceback(error.__traceback__)
        return located(error, self._place, (EnvError,), pickled)


_METHODS = {'step': RLWorker._step, 'reset': RLWorker._reset, 'clear': RLWorker._clear}


def row_types(probe: EnvProbe) -> tuple[np.dtype[np.void], np.dtype[np.void]]:
    """Return the types of a row of what workers are given, and of what they return."""
    state = [('steps', np.int64), ('levels', np.float32)]
    inputs = [('actions', np.float32, (probe.action_size,)), *state]
    rows = [
        ('observations', np.float32, probe.observation_space.shape),
        ('rewards', np.float32),
        ('returns', np.float64),
        ('episode_ids', np.int64),
        *state,
        *((name, np.bool_) for name in (*OUTCOME[1:], 'running')),
        *((metric_field(name), dtype) for name, dtype in probe.metric_types.items()),
    ]
    return np.dtype(inputs, align=True), np.dtype(rows, align=True)


def metric_field(name: str) -> str:
    """Return the field of a metric."""
    return f'metric {name}'


class _AssignedEpisodes(EpisodeQueue):
    """Queue of the episodes that were assigned."""

    _assigned: deque[Episode | None] = deque()

    def assign(self, starts: Iterable[Start]) -> None:
        """Queue these episodes."""
        self._assigned = deque(
            None
            if start.episode_id is None or start.task_index is None
            else Episode(start.episode_id, start.task_index, self._snapshots[start.task_index])
            for start in starts
        )

    @override
    def take(self) -> Episode | None:
        return self._assigned.popleft() if self._assigned else None

    @override
    def put_back(self, episodes: Iterable[Episode | None]) -> None:
        """Do nothing: the process that assigned the episodes still holds them."""
