"""Worker pool: the worker processes of a run, which are spawned, called, and replaced when they die."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from internutopia.core.config import DistributedConfig
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.util import log
from internutopia.distribution.cluster import connect
from internutopia.distribution.resources import worker_resources
from internutopia.distribution.waiting import Call, Patience

_WARN_AFTER = 30.0  # s without a sign of life of a new worker until a warning
_MAX_SPAWNS = 5  # processes that may die one after the other before a worker is ready


class WorkerDiedError(RuntimeError):
    """The process of a worker has ended in the middle of its work; None if it is not known which."""

    def __init__(self, worker: int | None, reason: str):
        super().__init__(reason)
        self.worker = worker


class WorkerPool:
    """Workers by number, of which each has a group of envs.

    Args:
        config: what to run.
        distribution: where.
        worker_class: of the workers; has a method `set_up`, which gets what `make_spec` and `set_up_arguments` gave,
            and says where it is.
        make_spec: says what workers are to be, of the config with what is different there.
        set_up_arguments: called with the number of a worker that is made, also in place of another.
        on_death: called with the number of a worker that has died, and the reason, when another one is on its way.
    """

    def __init__(
        self,
        config: DistributedConfig,
        distribution: RayDistributionCfg,
        worker_class: type[Any],
        make_spec: Callable[[DistributedConfig], Any],
        set_up_arguments: Callable[[int], tuple[Any, ...]],
        on_death: Callable[[int, str], None],
    ):
        self._set_up_arguments = set_up_arguments
        self._on_death = on_death
        self._cluster = connect(distribution)
        self._actors: list[Any] = []
        self._generations = [0] * distribution.proc_num
        self._setups: dict[int, Any] = {}  # of workers that have not been called yet
        self._places = [''] * distribution.proc_num  # process and machine of each
        self._timeouts: dict[tuple[int, int], str] = {}  # why a process was killed, by worker and generation
        self._envs_each = config.env_num
        self._patience = Patience(self._cluster, distribution.step_timeout, self.describe, self._kill_stuck)
        try:
            with self._cluster.call():
                self._prepare(config, distribution, worker_class, make_spec)
            for worker in range(distribution.proc_num):
                self._actors.append(None)
                self._spawn(worker)
            for worker in range(distribution.proc_num):
                self._wait_ready(worker)
        except BaseException:
            self.shutdown()
            raise

    def check(self) -> None:
        """ConnectionError if Ray is gone."""
        self._cluster.check()

    def call_async(self, worker: int, method: str, *arguments: Any, after: Iterable[Call] = ()) -> Call:
        """Begin a call, once others have gone well; `gather` gives its result. ConnectionError if Ray is gone."""
        if worker in self._setups:
            self._wait_ready(worker)
        before = tuple(after)
        with self._cluster.call():
            result = getattr(self._actors[worker], method).remote(*arguments, *(call.result for call in before))
        return Call(worker, method, self._generations[worker], result, before)

    def call(self, worker: int, method: str, *arguments: Any) -> Any:
        """Call a worker and wait. RuntimeError if it dies."""
        (answer,) = self.gather({worker: self.call_async(worker, method, *arguments)}).values()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def poll(self, calls: Mapping[int, Call], block: bool) -> list[int]:
        """The workers whose call is done; with `block`, at least one."""
        workers = {call.result: worker for worker, call in calls.items()}
        if block:
            self._patience.wait(calls.values(), 1)
        done = self._cluster.wait(list(workers), len(workers), timeout=0.0)
        return [workers[result] for result in done]

    def gather(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Wait for calls; the result of each by worker, or the exception that it ended with.

        Where a worker has died that is a `WorkerDiedError`. A call that was not made because one that it depends on
        failed has the exception of that one; if a worker died there, a `WorkerDiedError` of no known worker.
        ConnectionError if Ray is gone.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError

        answers: dict[int, Any] = {}
        self._patience.wait(calls.values(), len(calls))
        for worker, call in calls.items():
            try:
                answers[worker] = self._cluster.get(call.result)
            except RayTaskError as error:
                cause = error.cause
                answers[worker] = (
                    WorkerDiedError(None, str(cause)) if isinstance(cause, RayError) else _with_traceback(error)
                )
            except RayError as error:
                reason = self._timeouts.get((worker, call.generation)) or f'died ({type(error).__name__})'
                answers[worker] = WorkerDiedError(worker, f'worker {worker} {reason}')
        for worker, answer in answers.items():
            if not isinstance(answer, WorkerDiedError) or answer.worker != worker:
                continue
            if calls[worker].generation == self._generations[worker]:  # else it is known
                self._cluster.keep_logs()
                with self._cluster.call():
                    ray.kill(self._actors[worker])
                self._spawn(worker)
                self._on_death(worker, str(answer))
        return answers

    def shutdown(self) -> None:
        """End all workers."""
        import ray

        with suppress(ConnectionError), self._cluster.call():  # they end with the cluster
            for actor in self._actors:
                if actor is not None:
                    ray.kill(actor)
        self._actors.clear()
        self._cluster.release()

    def _prepare(
        self,
        config: DistributedConfig,
        distribution: RayDistributionCfg,
        worker_class: type[Any],
        make_spec: Callable[[DistributedConfig], Any],
    ) -> None:
        """Say what workers are to be."""
        import ray

        resources = worker_resources(config, distribution)
        simulator = config.simulator.model_copy(update={'threads': resources.threads})
        changes = {'metrics_save_path': None, 'resume': False, 'simulator': simulator}
        self._spec = ray.put(make_spec(config.model_copy(update=changes)))
        options = {'num_cpus': resources.cpus, 'num_gpus': resources.gpus, 'runtime_env': self._cluster.runtime_env}
        self._actor_class = ray.remote(scheduling_strategy='SPREAD', **options)(worker_class)

    def _spawn(self, worker: int) -> None:
        self._generations[worker] += 1
        with self._cluster.call():
            self._actors[worker] = self._actor_class.remote()
            self._setups[worker] = self._actors[worker].set_up.remote(self._spec, *self._set_up_arguments(worker))

    def _wait_ready(self, worker: int) -> None:
        """Wait until a new worker is ready. What goes wrong in it is raised."""
        from ray.exceptions import RayError, RayTaskError

        for _ in range(_MAX_SPAWNS):
            while not self._cluster.wait([self._setups[worker]], 1, _WARN_AFTER):
                log.warning('worker %d is not up yet: does the cluster have room for it? (see `ray status`)', worker)
            try:
                self._places[worker] = self._cluster.get(self._setups.pop(worker))
                return
            except RayTaskError as error:
                raise _with_traceback(error) from None
            except RayError:  # its process has ended
                self._spawn(worker)
        logs = self._cluster.keep_logs()
        raise WorkerDiedError(
            worker, f'worker {worker} died {_MAX_SPAWNS} times while it was starting; its log says why: {logs}'
        )

    def watch(self, calls: Collection[Call]) -> None:
        """Look at calls that are waited for elsewhere: warn of those that take long, end those that take too long."""
        self._patience.look(calls)

    def describe(self, worker: int) -> str:
        """Which worker that is, where, and with which envs, for messages."""
        first = worker * self._envs_each
        return f'worker {worker} ({self._places[worker]}, envs {first} to {first + self._envs_each - 1})'

    def _kill_stuck(self, call: Call) -> None:
        """End the process that has a call: like any death, that is what the call ends with."""
        import ray

        if call.generation != self._generations[call.worker]:  # it has ended already
            return
        reason = f'was killed: no answer to `{call.method}` for {call.waited:.0f} s (step_timeout)'
        self._timeouts[call.worker, call.generation] = reason
        with self._cluster.call():
            ray.kill(self._actors[call.worker])


def _with_traceback(error: Any) -> Exception:
    """What was raised in a worker; if it is no mistake of the user, with the place."""
    cause: Exception = error.cause
    if not isinstance(cause, ValueError | KeyError | OSError):
        cause.add_note(str(error))  # its traceback there
    return cause
