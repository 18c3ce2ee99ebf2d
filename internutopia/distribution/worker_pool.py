"""The worker processes of a run: started, called, and replaced when they die."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from internutopia.core.config import DistributedConfig
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.registries import REGISTRIES
from internutopia.core.util import log
from internutopia.distribution.cluster import connect
from internutopia.distribution.share import environment, share_of
from internutopia.distribution.worker import Worker, WorkerSpec

_PATIENCE = 30.0  # s without a sign of life of a new worker until a warning
_ATTEMPTS = 5  # processes that may die one after the other before a worker is ready


@dataclass(frozen=True)
class Call:
    """A call under way: its result to be (a Ray object reference), and the how manyth worker of its group has it."""

    result: Any
    generation: int


class WorkerDied(RuntimeError):
    """The process of worker `group` has ended in the middle of its work."""

    def __init__(self, group: int, reason: str):
        super().__init__(reason)
        self.group = group


class WorkerPool:
    """One worker per group of envs, by number.

    Args:
        config: what to run.
        distribution: where.
        env_num: number of envs of all workers.
        lost: called with the number of a worker that has died, and the reason, when another one is on its way.
    """

    def __init__(
        self,
        config: DistributedConfig,
        distribution: RayDistributionCfg,
        env_num: int,
        lost: Callable[[int, str], None],
    ):
        self._lost = lost
        self._cluster = connect(distribution)
        self._actors: list[Any] = []
        self._generations = [0] * distribution.proc_num
        self._setups: dict[int, Any] = {}  # of workers that have not been called yet
        try:
            with self._cluster.call():
                self._prepare(config, distribution, env_num)
            for group in range(distribution.proc_num):
                self._actors.append(None)
                self._hire(group)
            for group in range(distribution.proc_num):
                self._welcome(group)
        except BaseException:
            self.dismiss()
            raise

    def check(self) -> None:
        """ConnectionError if Ray is gone."""
        self._cluster.check()

    def call(self, group: int, method: str, *arguments: Any, after: Iterable[Call] = ()) -> Call:
        """Begin a call, once others have gone well; `gather` gives its result. ConnectionError if Ray is gone."""
        if group in self._setups:
            self._welcome(group)
        waits_for = [call.result for call in after]
        with self._cluster.call():
            result = getattr(self._actors[group], method).remote(*arguments, *waits_for)
        return Call(result, self._generations[group])

    def ask(self, group: int, method: str, *arguments: Any) -> Any:
        """Call a worker and wait. RuntimeError if it dies."""
        (answer,) = self.gather({group: self.call(group, method, *arguments)}).values()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ready(self, calls: Mapping[int, Call], block: bool) -> list[int]:
        """The workers whose call is done; with `block`, at least one."""
        groups = {call.result: group for group, call in calls.items()}
        if block:
            self._cluster.wait(list(groups), 1)
        done = self._cluster.wait(list(groups), len(groups), timeout=0.0)
        return [groups[result] for result in done]

    def gather(self, calls: Mapping[int, Call]) -> dict[int, Any]:
        """Wait for calls; the result of each by worker, or the exception that it ended with.

        Where a worker has died that is a `WorkerDied`. A call that was not made because one that it depends on failed
        has the exception of that one; if a worker died there, a `WorkerDied` of another group. ConnectionError if Ray
        is gone.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError

        answers: dict[int, Any] = {}
        self._cluster.wait([call.result for call in calls.values()], len(calls))
        for group, call in calls.items():
            try:
                answers[group] = self._cluster.get(call.result)
            except RayTaskError as error:
                cause = error.cause
                answers[group] = WorkerDied(-1, str(cause)) if isinstance(cause, RayError) else _described(error)
            except RayError as error:
                answers[group] = WorkerDied(group, f'worker {group} died ({type(error).__name__})')
        for group, answer in answers.items():
            if not isinstance(answer, WorkerDied) or answer.group != group:
                continue
            if calls[group].generation == self._generations[group]:  # else it is known
                with self._cluster.call():
                    ray.kill(self._actors[group])
                self._hire(group)
                self._lost(group, str(answer))
        return answers

    def dismiss(self) -> None:
        """End all workers."""
        import ray

        with suppress(ConnectionError), self._cluster.call():  # they end with the cluster
            for actor in self._actors:
                if actor is not None:
                    ray.kill(actor)
        self._actors.clear()
        self._cluster.release()

    @staticmethod
    def pickled(value: Any) -> bytes:
        """A value for a worker, classes of the main script included."""
        from ray import cloudpickle

        return cloudpickle.dumps(value)  # pyright: ignore[reportPrivateImportUsage]

    def _prepare(self, config: DistributedConfig, distribution: RayDistributionCfg, env_num: int) -> None:
        """Say what workers are to be."""
        import ray

        share = share_of(config, distribution)
        simulator = config.simulator.model_copy(update={'threads': share.threads})
        changes = {
            'env_num': env_num,
            'metrics_save_path': None,
            'resume': False,
            'simulator': simulator,
            'task_configs': [],
        }
        registries = self.pickled({kind: dict(classes) for kind, classes in REGISTRIES.items()})
        self._order = ray.put(WorkerSpec(config.model_copy(update=changes), registries, environment()))
        options = {'num_cpus': share.cpus, 'num_gpus': share.gpus, 'runtime_env': self._cluster.runtime_env}
        self._actor_class = ray.remote(scheduling_strategy='SPREAD', **options)(Worker)

    def _hire(self, group: int) -> None:
        self._generations[group] += 1
        with self._cluster.call():
            self._actors[group] = self._actor_class.remote()
            self._setups[group] = self._actors[group].set_up.remote(self._order)

    def _welcome(self, group: int) -> None:
        """Wait until a new worker is ready. What goes wrong in it is raised."""
        from ray.exceptions import RayError, RayTaskError

        for _ in range(_ATTEMPTS):
            while not self._cluster.wait([self._setups[group]], 1, _PATIENCE):
                log.warning('worker %d is not up yet: does the cluster have room for it? (see `ray status`)', group)
            try:
                self._cluster.get(self._setups.pop(group))
                return
            except RayTaskError as error:
                raise _described(error) from None
            except RayError:  # its process has ended
                self._hire(group)
        raise WorkerDied(group, f'worker {group} died {_ATTEMPTS} times while it was starting; its log says why')


def _described(error: Any) -> Exception:
    """What was raised in a worker; if it is no mistake of the user, with the place."""
    cause: Exception = error.cause
    if not isinstance(cause, ValueError | KeyError | OSError):
        cause.add_note(str(error))  # its traceback there
    return cause
