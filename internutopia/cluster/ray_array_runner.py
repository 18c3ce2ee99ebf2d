"""Ray array runner: the envs of the array API in worker processes on a Ray cluster, stepped from here.

It serves `rl.VectorEnv` as `ArrayRunner` does in one process, with bitwise the same numbers. Each worker steps,
evaluates and restarts its envs. This process has the episode queue, the results and the rows of all envs; each worker
receives its own rows and sends them back.

The episodes of a worker that dies go back to the queue, as in the list API; its envs are truncated with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.cluster.remote_episodes import LostEpisodes
from internutopia.cluster.rl_worker import (
    OUTCOME,
    STATE,
    STEP,
    Request,
    RLReply,
    RLWorker,
    RLWorkerSpec,
    Start,
    metric_field,
    row_types,
)
from internutopia.cluster.waiting import Call
from internutopia.cluster.worker_pool import WorkerDiedError, WorkerPool
from internutopia.cluster.worker_process import pickled
from internutopia.config import DistributedConfig
from internutopia.config.config import RayDistributionCfg
from internutopia.config.learning import LearningCfg
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.results import Results, ResultsWriter
from internutopia.core.runner.grid import with_spacing
from internutopia.core.runner.interfaces import Question, StepWatcher
from internutopia.core.task.scene_builder import check_implemented
from internutopia.engines.env_selection import EnvIdSelection, EnvSelection
from internutopia.rl.array_runner import StepOutcome, tasks_of_episodes
from internutopia.rl.checks import checked_learning, combined_seed
from internutopia.rl.probe import EnvProbe
from internutopia.rl.terms.registry import terms_of
from internutopia.util.arrays import HostArrays

Array = NDArray[np.float32]


@dataclass
class SharedState:
    """State of the envs that learners may read and change: see `RobotState`."""

    steps: NDArray[np.int64]
    levels: Array


class RayArrayRunner:
    """`proc_num * env_num` envs in workers; see `ArrayRunner`, whose methods these are.

    Worker `k` has the envs `k * env_num .. (k + 1) * env_num - 1`.
    """

    device_arrays = False

    def __init__(
        self,
        config: DistributedConfig,
        distribution: RayDistributionCfg,
        learning: LearningCfg | None,
        probe: EnvProbe,
    ):
        check_implemented(config)
        self.config = config = with_spacing(config.model_copy(update={'compat': '3.x'}))
        self.learning = checked_learning(config, learning)
        self.learning.one_group('a distributed VectorEnv')
        self.arrays = HostArrays()
        self.step_dt = probe.step_dt
        self._each = config.env_num
        self.env_num = distribution.proc_num * config.env_num
        self.groups: Sequence[range] = [
            range(first, first + self._each) for first in range(0, self.env_num, self._each)
        ]
        self.watchers: list[StepWatcher] = []
        self.queue = EpisodeQueue(tasks_of_episodes(config), config.episode_order, config.seed)
        self._recorded = config.results_file is not None or config.metrics_save_path == 'console'
        results = ResultsWriter(config)
        self.queue.skip(results.done)
        self.results: Results = results
        self._losses = LostEpisodes(self.queue, results, distribution.episode_retries)
        self._episodes: list[Episode | None] = [None] * self.env_num
        self._lost: dict[int, str] = {}  # envs whose worker has died, until they have reported it; and why
        self._starting: set[int] = set()  # envs whose reset is under way: it is made again if their worker dies
        self._joining: set[int] = set()  # envs that start in the step which is under way
        self._started = self._critic_seen = self._closed = False
        self._row_types = row_types(probe)
        self._inputs, self._rows = (np.zeros(self.env_num, row_type) for row_type in self._row_types)
        self._critic: Array = np.zeros((self.env_num, probe.critic_size), np.float32)
        self.running: NDArray[np.bool_] = self._rows['running']
        self.episode_ids: NDArray[np.int64] = self._rows['episode_ids']
        self.episode_ids[:] = -1
        self.returns: NDArray[np.float64] = self._rows['returns']
        self.state = SharedState(self._rows['steps'], self._rows['levels'])
        self._pending: dict[int, Call] = {}  # of workers that have not answered yet
        try:
            self._pool = WorkerPool(
                config, distribution, RLWorker, self._spec, lambda worker: (worker,), self._on_death
            )
        except BaseException:
            results.close()
            raise

    @property
    def runner(self) -> Any:
        """Not available: RuntimeError."""
        raise RuntimeError(
            'robots, scenes and images of a distributed VectorEnv are in its workers, not in this process'
        )

    def seed(self, seed: int | Sequence[int]) -> None:
        """Start everything random, endless orders of episodes and the curriculum again."""
        self.queue.restart(combined_seed(seed))
        self.state.levels[:] = 0.0

    def select(self, mask: NDArray[np.bool_]) -> EnvSelection:
        """Return the envs of a mask, bool `(n,)`."""
        return EnvIdSelection(np.flatnonzero(mask))

    def reset(self, envs: EnvSelection) -> None:
        """Start the next episodes in these envs; those that get none stop running.

        What goes wrong in one worker leaves all of these envs without an episode. RuntimeError if workers die again and
        again while they start an episode.
        """
        env_ids = envs.host_ids.tolist()
        starts = self._take(env_ids)
        self._starting = set(env_ids)
        try:
            self._start(starts)
        except BaseException:
            self._give_back(env_ids)
            raise
        finally:
            self._starting = set()
            self.results.flush()
        for env_id in env_ids:
            self._lost.pop(env_id, None)
        self._started = True
        self._notify_change()

    def step(self, actions: NDArray[np.float32], starting: EnvSelection | None = None) -> StepOutcome:
        """Apply actions `(n, k)` to the running envs, make a step, and evaluate it. Rows of other envs do not count.

        Envs of `starting` start their next episode when the others have moved, and see nothing of these actions.
        """
        if not self._started:
            raise RuntimeError('reset the envs first')
        for watcher in self.watchers:
            watcher.on_step_start()
        self._settle()
        self._inputs['actions'] = actions
        requests = dict.fromkeys(range(len(self.groups)), STEP)
        starts_of: dict[int, list[Start]] = {}
        self._joining = set()
        if starting is not None and starting.any:
            started = starting.host_ids.tolist()
            self._joining = set(started)
            starts_of = self._by_worker(self._take(started))
            requests |= {worker: self._request('step', starts) for worker, starts in starts_of.items()}
        replies = self._exchange(requests)
        self._joining = set()
        failed = [worker for worker, reply in replies.items() if reply.exception is not None]
        self._give_back([start.env_id for worker in failed for start in starts_of.get(worker, [])])
        _raise_first(replies)
        errors = {env_id: text for reply in replies.values() for env_id, text in reply.errors.items()}
        outcome = self._outcome(errors)
        self._notify_change()
        return outcome

    def compute_observations(self) -> Array:
        """Compute observations `(n, dim)`, the caller's own; zero for envs without an episode."""
        return self._rows['observations'].copy()

    def compute_first_observations(self, envs: EnvSelection) -> Array:
        """Compute observations `(m, dim)` of envs that have just started."""
        return envs.take(self._rows['observations']).copy()

    def last_observations(self) -> Array:
        """Return the last observations `(n, dim)`, the caller's own."""
        return self._rows['observations'].copy()

    def compute_critic_observations(self) -> Array:
        """Compute the observations of the critic `(n, dim)`. RuntimeError before the first reset."""
        if not self._started:
            raise RuntimeError('reset the envs first')
        if not self._critic_seen:
            replies = self._exchange(dict.fromkeys(range(len(self.groups)), ('critic',)))
            _raise_first(replies)
            for worker, reply in replies.items():
                if reply.answer is not None:
                    self._critic[self._own(worker)] = reply.answer
            self._critic_seen = True
        return self._critic.copy()

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Evaluate queries in workers; see `WorkerEnvs`. There are no answers once this is closed."""
        if self._closed:
            return {}
        critic_seen = self._critic_seen
        replies = self._exchange({worker: ('ask', question) for worker, question in questions.items()})
        self._critic_seen = critic_seen
        _raise_first(replies)
        return {worker: reply.answer for worker, reply in replies.items()}

    def close(self) -> None:
        """End the workers and free everything."""
        self._closed = True
        self._pending.clear()
        self._pool.shutdown()
        self.results.close()

    def _spec(self, config: DistributedConfig) -> RLWorkerSpec:
        tasks = [task.model_copy(update={'learning': self.learning}) for task in config.task_configs]
        own = config.model_copy(update={'task_configs': tasks, 'distribution_config': None})
        return RLWorkerSpec.of(
            own,
            total=self.env_num,
            terms=pickled(terms_of(self.learning)),
            recorded=self._recorded,
            row_types=self._row_types,
        )

    def _notify_change(self) -> None:
        for watcher in self.watchers:
            watcher.on_change()

    def _own(self, worker: int) -> slice:
        """Return the rows of a worker."""
        return slice(worker * self._each, (worker + 1) * self._each)

    def _take(self, env_ids: Sequence[int]) -> list[Start]:
        """Return the next episodes, one for each env."""
        starts: list[Start] = []
        for env_id in env_ids:
            self._episodes[env_id] = episode = self.queue.take()
            given = () if episode is None else (episode.id, episode.task_index)
            starts.append(Start(env_id, *given))
        return starts

    def _give_back(self, env_ids: Sequence[int]) -> None:
        """Return the episodes of envs, which did not start, to the head of the queue."""
        self.queue.put_back([self._episodes[env_id] for env_id in env_ids])
        for env_id in env_ids:
            self._episodes[env_id] = None

    def _start(self, starts: Sequence[Start]) -> None:
        """Start episodes in workers."""
        todo, done = self._by_worker(starts), list[int]()
        while todo:
            self._losses.check(episode for start in starts if (episode := self._episodes[start.env_id]) is not None)
            replies = self._exchange({worker: self._request('reset', own) for worker, own in todo.items()})
            exceptions = [reply.exception for reply in replies.values() if reply.exception is not None]
            done += [worker for worker, reply in replies.items() if reply.exception is None]
            if exceptions:
                started = self._by_worker([start for start in starts if start.env_id // self._each in done])
                self._exchange({w: ('clear', [start.env_id for start in own]) for w, own in started.items()})
                raise exceptions[0]
            todo = {worker: own for worker, own in todo.items() if worker not in replies}

    def _request(self, method: str, starts: Sequence[Start]) -> Request:
        return method, starts, self.queue.seed

    def _by_worker(self, starts: Sequence[Start]) -> dict[int, list[Start]]:
        sorted_out: dict[int, list[Start]] = {}
        for start in starts:
            sorted_out.setdefault(start.env_id // self._each, []).append(start)
        return sorted_out

    def _exchange(self, requests: Mapping[int, Request]) -> dict[int, RLReply]:
        """Send requests to workers; returns the replies of those that have not died meanwhile.

        ConnectionError if Ray is gone. Whatever ends this early leaves replies to `_settle`.
        """
        self._settle()
        self._critic_seen = False
        for name in STATE:
            self._inputs[name] = self._rows[name]
        for worker, request in requests.items():
            inputs = self._inputs[self._own(worker)].view(np.uint8)
            self._pending[worker] = self._pool.call_async(worker, 'exchange', request, inputs)
        return self._settle()

    def _settle(self) -> dict[int, RLReply]:
        """Wait for replies, also to an interrupted call; takes rows and results from them."""
        replies: dict[int, RLReply] = {}
        answers = self._pool.gather(self._pending)
        self._pending.clear()
        for worker, answer in answers.items():
            if isinstance(answer, WorkerDiedError | InterruptedError):
                continue
            if isinstance(answer, Exception):
                raise answer
            replies[worker] = answer
            if answer.rows is not None:
                self._rows[self._own(worker)] = answer.rows.view(self._rows.dtype)
            for record in answer.results:
                self.results.write(record)
        return replies

    def _outcome(self, errors: dict[int, str]) -> StepOutcome:
        """Return the outcome of a step, including envs whose workers have died since the one before."""
        rewards, terminated, truncated, failed, stuck = (self._rows[name].copy() for name in OUTCOME)
        metrics = {name: self._rows[metric_field(name)].copy() for name in self.learning.metrics}
        if self._lost:
            rows = list(self._lost)
            truncated[rows] = True
            errors |= self._lost
            self._lost = {}
        self.results.flush()
        ended = EnvIdSelection(np.flatnonzero(terminated | truncated))
        return StepOutcome(rewards, terminated, truncated, failed, stuck, errors, ended, metrics)

    def _on_death(self, worker: int, reason: str) -> None:
        """Put the running episodes of a dead worker back into the queue; observations stay what was seen last."""
        rows = self._own(worker)
        for name in (*OUTCOME, *map(metric_field, self.learning.metrics)):
            self._rows[name][rows] = 0
        running: dict[int, tuple[Episode, str | None, int]] = {}
        for env_id in range(rows.start, rows.stop):
            episode = self._episodes[env_id]
            if episode is not None and env_id in self._starting:
                self._losses.count([episode])
            elif episode is not None and (self.running[env_id] or env_id in self._joining):
                task = self.config.task_configs[episode.task_index].type
                running[env_id] = episode, task, int(self.state.steps[env_id])
                self._episodes[env_id] = None
        self.running[rows] = False
        self._lost |= {env_id: text for env_id, (text, _) in self._losses.lose(running, reason).items()}


def _raise_first(replies: Mapping[int, RLReply]) -> None:
    """Raise what a worker has raised."""
    for reply in replies.values():
        if reply.exception is not None:
            raise reply.exception
