"""Worker pool: the worker processes of a run, which are spawned, called, and replaced when they die."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from internutopia.cluster.pipe_link import PipeLink
from internutopia.cluster.ray_cluster import connect
from internutopia.cluster.waiting import Call, Patience
from internutopia.cluster.worker_process import this_node, worker_resources
from internutopia.config import DistributedConfig
from internutopia.config.config import RayDistributionCfg
from internutopia.util import log

_START_WARNING_INTERVAL = 30.0  # s between two warnings while a new worker gives no sign of life
_LINK_INTERVAL = 0.2  # s between two checks that a worker serves a link
_MAX_SPAWNS = 5  # processes that may die in sequence before a worker is ready


class WorkerDiedError(RuntimeError):
    """The process of a worker has ended in the middle of its work."""

    def __init__(self, worker: int, reason: str):
        super().__init__(reason)
        self.worker = worker


class WorkerPool:
    """Pool of workers by number, each with a group of envs.

    Args:
        worker_class: of the workers; has a method `set_up`, which gets what `make_spec` and `set_up_arguments` gave,
            and says where it is.
        make_spec: makes the specification of workers, of the config with what is different there.
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
        self._links: dict[int, PipeLink | None] = {}  # None: through Ray
        self._calls: dict[int, Call] = {}  # the last call through each link
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
        """Raise ConnectionError if Ray is gone."""
        self._cluster.check()

    def call_async(self, worker: int, method: str, *arguments: Any) -> Call:
        """Begin a call; `gather` gives its result. ConnectionError if Ray is gone."""
        if worker in self._setups:
            self._wait_ready(worker)
        self._settle(worker)
        link, actor = self._links[worker], self._actors[worker]
        with self._cluster.call():
            if link is None:
                return Call(worker, method, self._generations[worker], actor.answer.remote(method, arguments))
            self._calls[worker] = call = Call(worker, method, self._generations[worker], link.served, link)
            link.send(method, arguments)
            return call

    def call(self, worker: int, method: str, *arguments: Any) -> Any:
        """Call a worker and wait. RuntimeError if it dies."""
        (answer,) = self.gather({worker: self.call_async(worker, method, *arguments)}).values()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def poll(self, calls: Mapping[int, Call], block: bool) -> list[int]:
        """Return the workers whose call is done; with `block`, at least one."""
        return [call.worker for call in self._patience.wait(calls.values(), int(block))]

    def call_each(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a method of workers, each with its own arguments, and wait; see `gather`."""
        return self.gather({worker: self.call_async(worker, method, *own) for worker, own in arguments.items()})

    def gather(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Wait for calls; the result of each by worker. See `as_done`."""
        answers = dict(self.as_done(calls))
        return {worker: answers[worker] for worker in calls}

    def as_done(self, calls: Mapping[int, Call]) -> Iterator[tuple[int, Any]]:
        """Wait for calls: each worker, as soon as it has answered, and its result or the exception that it ended with.

        Where a worker has died that is a `WorkerDiedError`; these come last, in the order of workers.
        ConnectionError if Ray is gone.
        """
        left, deaths = list(calls.values()), dict[int, WorkerDiedError]()
        while left:
            for call in self._patience.wait(left, 1):
                answer = self._answer(call)
                left.remove(call)
                if isinstance(answer, WorkerDiedError):
                    deaths[call.worker] = answer
                else:
                    yield call.worker, answer
        for worker, death in sorted(deaths.items()):
            if calls[worker].generation == self._generations[worker]:  # else it is known
                self._replace(worker, str(death))
            yield worker, death

    def shutdown(self) -> None:
        """End all workers."""
        for link in self._links.values():
            if link is not None:
                link.close()
        with suppress(ConnectionError):  # they end with the cluster
            for actor in self._actors:
                if actor is not None:
                    self._cluster.kill(actor)
        self._actors.clear()
        self._cluster.release()

    def _prepare(
        self,
        config: DistributedConfig,
        distribution: RayDistributionCfg,
        worker_class: type[Any],
        make_spec: Callable[[DistributedConfig], Any],
    ) -> None:
        import ray

        resources = worker_resources(config, distribution)
        simulator = config.simulator.model_copy(update={'threads': resources.threads})
        changes = {'metrics_save_path': None, 'resume': False, 'simulator': simulator}
        self._spec = ray.put(make_spec(config.model_copy(update=changes)))
        options = {'num_cpus': resources.cpus, 'num_gpus': resources.gpus, 'runtime_env': self._cluster.runtime_env}
        self._actor_class = ray.remote(scheduling_strategy='SPREAD', **options)(worker_class)

    def _spawn(self, worker: int) -> None:
        self._generations[worker] += 1
        self._drop_link(worker)
        with self._cluster.call():
            self._actors[worker] = self._actor_class.remote()
            self._setups[worker] = self._actors[worker].set_up.remote(self._spec, *self._set_up_arguments(worker))

    def _replace(self, worker: int, reason: str) -> None:
        """Replace a worker that has died."""
        self._cluster.keep_logs()
        self._cluster.kill(self._actors[worker])
        self._spawn(worker)
        self._on_death(worker, reason)

    def _wait_ready(self, worker: int) -> None:
        """Wait until a new worker is ready. What goes wrong in it is raised."""
        from ray.exceptions import RayError, RayTaskError

        for _ in range(_MAX_SPAWNS):
            while not self._cluster.wait([self._setups[worker]], 1, _START_WARNING_INTERVAL):
                log.warning(
                    'worker %d has not started yet: does the cluster have free resources? (see `ray status`)', worker
                )
            try:
                self._places[worker] = self._cluster.get(self._setups[worker])
                with self._cluster.call():
                    node = self._actors[worker].node.remote()
                self._cluster.wait([node], 1)
                near = self._cluster.get(node) == this_node()
                self._links[worker] = self._open_link(worker) if near else None
                del self._setups[worker]
                return
            except RayTaskError as error:
                del self._setups[worker]
                raise _with_traceback(error) from None
            except RayError:  # its process has ended
                self._spawn(worker)
        logs = self._cluster.keep_logs()
        raise WorkerDiedError(
            worker, f'worker {worker} died {_MAX_SPAWNS} times while it was starting; its log says why: {logs}'
        )

    def _open_link(self, worker: int) -> PipeLink | None:
        """Return the way to a worker of this machine; None if only Ray reaches it."""
        with self._cluster.call():
            link = PipeLink(self._actors[worker])
        call = Call(worker, 'serve', self._generations[worker], link.served, link)
        try:
            while not link.pipe.poll(_LINK_INTERVAL):
                self._patience.count([call])
                if self._cluster.wait([link.served], 1, 0.0):
                    return self._unserved(worker, link)
            link.on_served()
        except BaseException:
            link.close()
            raise
        return link

    def _unserved(self, worker: int, link: PipeLink) -> PipeLink | None:
        """Return the replacement of a link that a worker does not serve."""
        from ray.exceptions import RayError, RayTaskError

        try:
            self._cluster.get(link.served)
        except RayTaskError as error:
            link.close()
            text = '%s cannot be reached but through Ray, which takes milliseconds a step: %s'
            log.warning(text, self.describe(worker), error.cause)
            return None
        except RayError:
            """It has died, which its first call will say."""
        link.on_served()
        return link

    def _settle(self, worker: int) -> None:
        """Clear the way to a worker: a call that was interrupted may still be under way."""
        link, call = self._links[worker], self._calls.get(worker)
        if link is not None and link.busy and call is not None:
            self._patience.wait([call], 1)
            self._receive(call)
        if link is not None and not link.intact:
            self._drop_link(worker)
            self._links[worker] = self._open_link(worker)

    def _drop_link(self, worker: int) -> None:
        link = self._links.pop(worker, None)
        if link is not None:
            link.close()

    def _receive(self, call: Call) -> None:
        """Take what has come of a call through its link."""
        if call.link is not None and not call.settled:
            call.answer = call.link.receive()
            call.link.on_received()
        elif call.answer == () and call.settled:
            call.answer = False, InterruptedError(f'`{call.method}` was interrupted')

    def _answer(self, call: Call) -> Any:
        """Return the outcome of a call that is done: its result, or the exception that it ended with."""
        from ray.exceptions import RayError, RayTaskError

        self._receive(call)
        if call.answer:
            return call.answer[1]
        try:
            self._patience.wait([replace(call, link=None)], 1)  # where there was a link, it has ended
            return self._cluster.get(call.result)[1]
        except RayTaskError as error:
            return _with_traceback(error)
        except RayError as error:
            reason = self._timeouts.get((call.worker, call.generation)) or f'died ({type(error).__name__})'
            return WorkerDiedError(call.worker, f'worker {call.worker} {reason}')

    def describe(self, worker: int) -> str:
        """Return the number, place and envs of a worker, for messages."""
        first = worker * self._envs_each
        return f'worker {worker} ({self._places[worker]}, envs {first} to {first + self._envs_each - 1})'

    def _kill_stuck(self, call: Call) -> None:
        """End the process that has a call: like any death, that is what the call ends with."""
        if call.generation != self._generations[call.worker]:  # it has ended already
            return
        reason = f'was killed: no answer to `{call.method}` for {call.waited:.0f} s (step_timeout)'
        self._timeouts[call.worker, call.generation] = reason
        if call.link is not None:
            call.link.kill()
        self._cluster.kill(self._actors[call.worker])


def _with_traceback(error: Any) -> Exception:
    """Return what was raised in a worker; with its place, if it is no mistake of the user."""
    cause: Exception = error.cause
    if not isinstance(cause, ValueError | KeyError | OSError):
        cause.add_note(str(error))  # its traceback there
    return cause


def raise_first(answers: Mapping[int, Any], but: Collection[int] = ()) -> None:
    """Raise the first exception, those of some workers aside."""
    for worker, answer in answers.items():
        if isinstance(answer, Exception) and worker not in but:
            raise answer
