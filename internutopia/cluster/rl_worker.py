"""Worker of the array API: some of the envs of a `rl.VectorEnv`, with their physics, terms and restarts.

Arrays are not in the requests that it gets: those of its envs are shared with the main process, or go along where the
worker is on another machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.cluster.pipe_server import PipeServer, open_fds
from internutopia.cluster.shared_arrays import ArrayField, SharedArrays
from internutopia.cluster.worker import CollectedResults
from internutopia.cluster.worker_process import WorkerSpec, pickled, this_place, unpickled
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.record import EpisodeRecord
from internutopia.core.episodes.results import ResultsWriter
from internutopia.core.runner.grid import env_origins
from internutopia.rl.batched_env import BatchedRLEnv, EnvShare, StepOutcome, tasks_of_episodes
from internutopia.rl.terms.registry import add_terms
from internutopia.util.errors import EnvError, located

Request = tuple[Any, ...]
"""Name of what is to be done, and its arguments."""
STEP: Request = ('step', (), 0)
"""Request of a step in which no episode starts."""
SLOTS = 2
"""Number of arrays of observations, which are written in turns: those of the step before survive a worker that dies."""

OUTCOME = ('rewards', 'terminated', 'truncated', 'failed', 'stuck')
"""Fields of `StepOutcome` that are arrays of all envs; the first is float, the others are bool."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class RLWorkerSpec(WorkerSpec):
    """Specification of a worker: one of those that share `total` envs.

    Attributes:
        total: number of envs of all workers.
        terms: the registered terms, pickled by Ray.
        recorded: whether the results of episodes are requested.
    """

    total: int
    terms: bytes
    recorded: bool


@dataclass(frozen=True)
class Start:
    """The next episode of an env: its id and the index of its task; None for both leaves the env without one."""

    env_id: int
    episode_id: int | None = None
    task_index: int | None = None


@dataclass(frozen=True)
class RLReply:
    """Reply to a request, besides arrays, by ids of the whole run.

    Attributes:
        errors: why envs were cut.
        results: of the episodes that ended.
        exception: that the request ended with.
        answer: result of the query.
    """

    errors: Mapping[int, str]
    results: Sequence[EpisodeRecord]
    exception: Exception | None = None
    answer: Any = None


class RLWorker(PipeServer):
    """Envs of a distributed `VectorEnv`; lives in a Ray actor."""

    def __init__(self) -> None:  # an actor whose constructor fails could not say why
        self._results = CollectedResults()
        self._queue: _AssignedEpisodes
        self._core: BatchedRLEnv
        self._first = 0  # id of the first env in the whole run
        self._place = ''
        self._arrays: Arrays = {}
        self._observed = False

    def set_up(self, spec: RLWorkerSpec, number: int) -> str:
        """Register the main process's classes and make the envs; returns the process id and address."""
        spec.set_up_process()
        add_terms(unpickled(spec.terms))
        config = spec.config
        self._first, rows = number * config.env_num, slice(number * config.env_num, (number + 1) * config.env_num)
        assert config.env_offset_size != 'auto'
        self._queue = _AssignedEpisodes(tasks_of_episodes(config))
        results = self._results if spec.recorded else ResultsWriter(config)
        origins = env_origins(spec.total, config.env_offset_size)[rows]
        self._core = BatchedRLEnv(config, None, EnvShare(self._queue, results, origins))
        self._place = f'worker {number} ({this_place()}, envs {rows.start} to {rows.stop - 1})'
        return this_place()

    def share(self, process: int, fd: int, fields: Mapping[str, ArrayField]) -> None:
        """Take the arrays of all envs from a process on this machine: its id, its file descriptor of the memory."""
        memory = SharedArrays(fields, open_fds(process, {'memory': fd})['memory'])
        memory.close()
        rows = slice(self._first, self._first + self._core.env_num)
        self._arrays = {name: own_rows(name, array, rows) for name, array in memory.items()}

    def exchange(self, request: Request) -> RLReply | None:
        """Run a request; None says that all went well, and no episode ended."""
        method, *arguments = request
        errors: Mapping[int, str] = {}
        exception = answer = None
        try:
            if method == 'ask':
                answer = arguments[0](self._core, self._first)
            else:
                errors = _METHODS[method](self, *arguments)
        except Exception as error:
            exception = self._located(error)
        if not errors and exception is None and answer is None and not self._results.any:
            return None
        results = [replace(each, env_id=self._first + each.env_id) for each in self._results.take()]
        return RLReply({self._first + i: text for i, text in errors.items()}, results, exception, answer)

    def exchange_with(self, request: Request, inputs: Arrays) -> tuple[RLReply | None, Arrays]:
        """Run a request with arrays that are sent along, there and back: all of the envs here."""
        if not self._arrays:
            self._arrays = {name: np.array(array) for name, array in inputs.items()}
        for name, array in inputs.items():
            self._arrays[name][:] = array
        return self.exchange(request), self._arrays

    def _step(self, starts: Sequence[Start], seed: int) -> Mapping[int, str]:
        core, arrays = self._core, self._arrays
        if not self._observed:  # no episode has ever started here
            return {}
        self._take_over()
        starting = core.select(self._assign(starts, seed))
        outcome = core.step(arrays['actions'], starting)
        self._show(outcome)
        self._observations()[:] = core.compute_observations()
        return outcome.errors

    def _reset(self, starts: Sequence[Start], seed: int) -> Mapping[int, str]:
        self._take_over()
        rows = self._core.select(self._assign(starts, seed))
        self._core.reset(rows)
        self._show(None)
        if self._core.started:
            if not self._observed or len(starts) == self._core.env_num:
                self._observations()[:] = self._core.compute_observations()
            else:
                rows.put(self._observations(), self._core.compute_first_observations(rows))
            self._observed = True
        return {}

    def _clear(self, env_ids: Sequence[int]) -> Mapping[int, str]:
        """Leave envs without an episode."""
        self._reset([Start(env_id) for env_id in env_ids], self._queue.seed)
        return {}

    def _critic(self) -> Mapping[int, str]:
        if self._observed:
            self._arrays['critic'][:] = self._core.compute_critic_observations()
        return {}

    def _assign(self, starts: Sequence[Start], seed: int) -> NDArray[np.bool_]:
        """Queue episodes for envs, in their order; returns the mask of these envs."""
        if starts:
            self._queue.seed = seed
        self._queue.assign(starts)
        mask = np.zeros(self._core.env_num, bool)
        mask[[start.env_id - self._first for start in starts]] = True
        return mask

    def _observations(self) -> NDArray[np.float32]:
        return self._arrays['observations'][self._arrays['slot'][0]]

    def _take_over(self) -> None:
        """Apply what the main process may have written."""
        if self._core.started:
            state = self._core.state
            state.steps[:], state.levels[:] = self._arrays['steps'], self._arrays['levels']

    def _show(self, outcome: StepOutcome | None) -> None:
        """Write everything but observations to the arrays."""
        core, arrays = self._core, self._arrays
        arrays['running'][:] = core.running
        arrays['episode_ids'][:] = core.episode_ids
        arrays['returns'][:] = core.returns
        if core.started:
            arrays['steps'][:], arrays['levels'][:] = core.state.steps, core.state.levels
        if outcome is not None:
            for name in OUTCOME:
                arrays[name][:] = getattr(outcome, name)
            for name, values in outcome.metrics.items():
                arrays[metric_field(name)][:] = values

    def _located(self, error: Exception) -> Exception:
        """Return an error with ids of the whole run in it and its origin, which can be pickled."""
        if isinstance(error, EnvError):
            env_id = self._first + error.env_id
            text = str(error.args[0]).replace(f'env {error.env_id}', f'env {env_id}', 1)
            error = type(error)(env_id, text).with_traceback(error.__traceback__)
        return located(error, self._place, (EnvError,), pickled)


_METHODS = {'step': RLWorker._step, 'reset': RLWorker._reset, 'clear': RLWorker._clear, 'critic': RLWorker._critic}


def own_rows(name: str, array: NDArray[Any], rows: slice) -> NDArray[Any]:
    """Return the rows of some envs in an array of all."""
    return array if name == 'slot' else array[:, rows] if name == 'observations' else array[rows]


def metric_field(name: str) -> str:
    """Return the array of a metric."""
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
