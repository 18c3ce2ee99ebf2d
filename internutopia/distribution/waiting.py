"""Waiting for workers: calls under way, and what happens to those that are not answered.

A worker that hangs is not dead, so nothing ends the wait for it. It is told of in warnings, at growing intervals, and
killed if a `step_timeout` says so. Only time counts in which this process has waited: not what it does in between, nor
what the machine sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from internutopia.core.util import log
from internutopia.distribution.cluster import Cluster

_WARN_AFTER = 30.0  # s without an answer until the first warning; each further one takes twice as long
_LOOK_INTERVAL = 1.0  # s between two looks at what is waited for


@dataclass(eq=False)
class Call:
    """A call under way: what is asked of a worker, and which process of it has been asked, from 1.

    Attributes:
        worker: its number.
        method: what is called.
        generation: number of the process.
        result: the result to be (a Ray object reference).
        after: the calls that have to go well before.
        waited: time that this process has waited for it [s].
        warn_at: value of `waited` at which there is a warning [s].
    """

    worker: int
    method: str
    generation: int
    result: Any
    after: tuple[Call, ...] = ()
    waited: float = 0.0
    warn_at: float = field(default_factory=lambda: _WARN_AFTER)

    def start_over(self, method: str) -> None:
        """Something else is asked for in this call, which has not been waited for yet."""
        self.method, self.waited, self.warn_at = method, 0.0, _WARN_AFTER


class Patience:
    """Waits for calls.

    Args:
        cluster: where workers are.
        step_timeout: time that a call may take [s]; None means any.
        describe: says which worker has a number, for messages.
        on_timeout: called with a call that took longer, which it is to end.
    """

    def __init__(
        self,
        cluster: Cluster,
        step_timeout: float | None,
        describe: Callable[[int], str],
        on_timeout: Callable[[Call], None],
    ):
        self._cluster = cluster
        self._step_timeout = step_timeout
        self._describe = describe
        self._on_timeout = on_timeout
        self._looked = 0.0

    def wait(self, calls: Collection[Call], num_returns: int) -> None:
        """Wait until at least so many calls are done. ConnectionError if Ray is gone."""
        results = [call.result for call in calls]
        while True:
            done = self._cluster.wait(results, num_returns, _LOOK_INTERVAL)
            if len(done) < len(results):
                self.look(calls)
            if len(done) >= num_returns:
                return

    def look(self, calls: Collection[Call]) -> None:
        """Count the time since the last look, a second ago, for the calls that workers are at."""
        now = time.monotonic()
        waited = min(now - self._looked, _LOOK_INTERVAL)
        if waited < _LOOK_INTERVAL / 2:
            return
        self._looked = now
        for call in self._at_work(calls):
            call.waited += waited
            if self._step_timeout is not None and call.waited >= self._step_timeout:
                self._on_timeout(call)
            elif call.waited >= call.warn_at:
                log.warning(
                    '%s has not answered `%s` for %.0f s%s',
                    *(self._describe(call.worker), call.method, call.waited),
                    ''
                    if self._step_timeout
                    else '; RayDistributionCfg(step_timeout=...) would replace it after a time',
                )
                call.warn_at *= 2

    def _at_work(self, calls: Collection[Call]) -> Iterator[Call]:
        """The calls that are not done, while those before them are; calls before these included."""
        everything = list(dict.fromkeys(each for call in calls for each in (*call.after, call)))
        results = [call.result for call in everything]
        done = set(self._cluster.wait(results, len(results), timeout=0.0))
        for call in everything:
            if call.result not in done and all(each.result in done for each in call.after):
                yield call
