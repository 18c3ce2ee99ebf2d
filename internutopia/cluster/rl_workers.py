"""Workers of the array API: those of this machine have the arrays of all envs, to others their rows are sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from internutopia.cluster.rl_worker import Request, RLReply, RLWorker, RLWorkerSpec, own_rows
from internutopia.cluster.shared_arrays import SharedArrays
from internutopia.cluster.waiting import Call
from internutopia.cluster.worker_pool import WorkerDiedError, WorkerPool
from internutopia.config import DistributedConfig
from internutopia.config.distribution import RayDistributionCfg

_INPUTS = ('slot', 'actions', 'steps', 'levels')  # what the main process writes


class RLWorkers:
    """Workers by number, each with the same number of envs, which receive requests and send replies.

    Args:
        config: what to run.
        distribution: where.
        make_spec: makes the specifications of workers.
        shared: arrays of all envs.
        on_death: called with the number of a worker that has died, and the reason, when another one is on its way.
    """

    def __init__(
        self,
        config: DistributedConfig,
        distribution: RayDistributionCfg,
        make_spec: Callable[[DistributedConfig], RLWorkerSpec],
        shared: SharedArrays,
        on_death: Callable[[int, str], None],
    ):
        self.count = distribution.proc_num
        self._each = config.env_num
        self._shared = shared
        self._on_death = on_death
        self._introduced: set[int] = set()  # workers that have arrays
        self._pending: dict[int, Call] = {}  # of those that have not answered yet
        self._pool = WorkerPool(
            config, distribution, RLWorker, make_spec, lambda worker: (worker,), self._on_worker_death
        )

    def exchange(self, requests: Mapping[int, Request]) -> dict[int, RLReply | None]:
        """Send requests and wait for the replies, by worker, of those that have not died meanwhile.

        ConnectionError if Ray is gone. Whatever ends this early leaves replies to `settle`.
        """
        assert not self._pending
        for worker, request in requests.items():
            self._pending[worker] = self._send(worker, request)
        return self.settle()

    def settle(self) -> dict[int, RLReply | None]:
        """Wait for the replies that have not been waited for."""
        answers = self._pool.gather(self._pending)
        self._pending.clear()
        replies: dict[int, RLReply | None] = {}
        for worker, answer in answers.items():
            if isinstance(answer, WorkerDiedError | InterruptedError):
                continue
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, tuple):
                answer, outputs = answer
                for name, rows in self._rows(worker).items():
                    rows[:] = outputs[name]
            replies[worker] = answer
        return replies

    def close(self) -> None:
        """End all workers."""
        self._pending.clear()
        self._pool.shutdown()

    def _send(self, worker: int, request: Request) -> Call:
        names = _INPUTS if worker in self._introduced else tuple(self._shared)
        while (near := self._pool.is_near(worker)) and worker not in self._introduced:
            memory = os.getpid(), self._shared.fd, self._shared.fields
            with suppress(WorkerDiedError):  # another one takes its place
                self._pool.call(worker, 'share', *memory)
                self._introduced.add(worker)
        if near:
            return self._pool.call_async(worker, 'exchange', request)
        self._introduced.add(worker)
        rows = self._rows(worker)
        return self._pool.call_async(worker, 'exchange_with', request, {name: rows[name] for name in names})

    def _rows(self, worker: int) -> dict[str, NDArray[Any]]:
        rows = slice(worker * self._each, (worker + 1) * self._each)
        return {name: own_rows(name, array, rows) for name, array in self._shared.items()}

    def _on_worker_death(self, worker: int, reason: str) -> None:
        self._introduced.discard(worker)
        self._on_death(worker, reason)
