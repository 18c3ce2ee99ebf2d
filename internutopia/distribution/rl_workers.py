"""Workers of the array API and the ways to them: pipes and shared arrays on this machine, Ray objects elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia.core.config import DistributedConfig
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.distribution.message_pipe import MessagePipe
from internutopia.distribution.rl_worker import RLWorker, RLWorkerSpec, own_rows
from internutopia.distribution.shared_arrays import SharedArrays
from internutopia.distribution.waiting import Call
from internutopia.distribution.worker_pool import WorkerDiedError, WorkerPool

Answer = bytes | WorkerDiedError
_LOOK_INTERVAL = 1.0  # s between two looks at who is waited for
_INPUTS = ('slot', 'actions', 'steps', 'levels')  # what the main process writes


class RLWorkers:
    """Workers by number, each with the same number of envs, that are sent requests and give replies.

    Args:
        config: what to run.
        distribution: where.
        make_spec: says what workers are to be.
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
        self._pool = WorkerPool(config, distribution, RLWorker, make_spec, lambda worker: (worker,), on_death)
        self._links: dict[int, _Link] = {}
        self._pending: list[int] = []  # who has not answered yet

    def exchange(self, requests: Mapping[int, bytes]) -> dict[int, Answer]:
        """Send requests and wait for the replies, by worker.

        ConnectionError if Ray is gone. Whatever ends this early leaves replies to `settle`.
        """
        assert not self._pending
        for worker, request in requests.items():
            self._link(worker).send(request)
            self._pending.append(worker)
        return self.settle()

    def settle(self) -> dict[int, Answer]:
        """Wait for the replies that have not been waited for."""
        answers: dict[int, Answer] = {}
        while self._pending:
            worker = self._pending[0]
            answers[worker] = answer = self._links[worker].receive()
            self._pending.pop(0)
            if isinstance(answer, WorkerDiedError):
                self._links.pop(worker).close()
        return answers

    def close(self) -> None:
        """End all workers."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._pending.clear()
        self._pool.shutdown()

    def _link(self, worker: int) -> _Link:
        """The way to a worker; to a new one, when it is ready."""
        while worker not in self._links:
            node = self._pool.gather({worker: self._pool.call_async(worker, 'node')})[worker]
            if isinstance(node, WorkerDiedError):
                continue
            rows = slice(worker * self._each, (worker + 1) * self._each)
            link = _PipeLink(self._pool, worker, self._shared) if node == _this_node() else None
            self._links[worker] = link or _RayLink(self._pool, worker, self._shared, rows)
        return self._links[worker]


class _Link(Protocol):
    """A way to a worker."""

    def send(self, request: bytes) -> None:
        """Have it do something."""
        ...

    def receive(self) -> Answer:
        """Wait for its reply."""
        ...

    def close(self) -> None:
        """No more requests."""
        ...


class _PipeLink:
    """The way to a worker on this machine, which has the shared arrays."""

    def __init__(self, pool: WorkerPool, worker: int, shared: SharedArrays):
        self._pool, self._worker = pool, worker
        (requests, own_requests), (own_replies, replies) = os.pipe(), os.pipe()
        self._pipe = MessagePipe(own_replies, own_requests)
        try:
            fds = {'memory': shared.fd, 'requests': requests, 'replies': replies}
            self._call = pool.call_async(worker, 'serve', os.getpid(), fds, shared.fields)
            while not self._pipe.poll(_LOOK_INTERVAL) and not pool.poll({worker: self._call}, block=False):
                pass
        finally:  # the worker has its own now: if it ends, so does the pipe
            os.close(requests)
            os.close(replies)
        self._pipe.receive()  # that it is ready, or nothing: the first request will tell

    def send(self, request: bytes) -> None:
        """Have it do something."""
        self._call.start_over('step')
        try:
            self._pipe.send(request)
        except BrokenPipeError:
            """It has ended; `receive` says why."""

    def receive(self) -> Answer:
        """Wait for its reply."""
        while not self._pipe.poll(_LOOK_INTERVAL):
            self._pool.watch([self._call])
        reply = self._pipe.receive()
        if reply is not None:
            return reply
        answer = self._pool.gather({self._worker: self._call})[self._worker]
        if isinstance(answer, WorkerDiedError):
            return answer
        raise answer or RuntimeError(f'{self._pool.describe(self._worker)} has closed its pipe')

    def close(self) -> None:
        """Let it end."""
        self._pipe.close()


class _RayLink:
    """The way to a worker on another machine."""

    def __init__(self, pool: WorkerPool, worker: int, shared: SharedArrays, rows: slice):
        self._pool, self._worker = pool, worker
        self._rows: dict[str, NDArray[Any]] = {name: own_rows(name, array, rows) for name, array in shared.items()}
        self._call: Call | None = None
        self._sent = False

    def send(self, request: bytes) -> None:
        """Have it do something."""
        names = _INPUTS if self._sent else self._rows
        self._sent = True
        inputs = {name: np.array(self._rows[name]) for name in names}
        self._call = self._pool.call_async(self._worker, 'exchange', request, inputs)

    def receive(self) -> Answer:
        """Wait for its reply, and take over its arrays."""
        assert self._call is not None
        answer = self._pool.gather({self._worker: self._call})[self._worker]
        if isinstance(answer, WorkerDiedError):
            return answer
        if isinstance(answer, Exception):
            raise answer
        reply, outputs = answer
        for name, array in outputs.items():
            self._rows[name][:] = array
        return reply

    def close(self) -> None:
        """It is ended by the pool."""


def _this_node() -> str | None:
    """The machine of this process, by its id in the cluster; None outside of it."""
    import ray
    from ray.util.client import ray as client

    return None if client.is_connected() else ray.get_runtime_context().get_node_id()
