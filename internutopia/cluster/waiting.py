"""Waiting for workers: pending calls, and the handling of calls without a reply.

A worker that hangs is not dead, so nothing ends the wait for it. It is reported in warnings, at growing intervals, and
killed after a `step_timeout`. Only the time that this process spends waiting counts, not its own work in between, nor
the time that the machine sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from internutopia.cluster.pipe_link import PipeLink
from internutopia.cluster.ray_cluster import Cluster
from internutopia.util import log

_FIRST_WARNING_AFTER = 30.0  # s without an answer until the first warning; each further one takes twice as long
_CHECK_INTERVAL = 1.0  # s between two checks of what is waited for
_MIXED_INTERVAL = 0.002  # s for which calls of one kind are waited for, where there are two kinds


@dataclass(eq=False)
class Call:
    """Call under way: the request to a worker, and the number of the process that got it, from 1.

    Attributes:
        result: the result to be (a Ray object reference); with a link, that of serving the link.
        link: the way of the call; None if that is Ray.
        answer: what came through the link: see `PipeLink.receive`; an empty tuple as long as nothing was received.
        waited: time that this process has waited for it [s].
        warn_at: value of `waited` at which there is a warning [s].
        begun: when it began, by the clock `time.monotonic`.
    """

    worker: int
    method: str
    generation: int
    result: Any
    link: PipeLink | None = None
    answer: tuple[Any, ...] | None = ()
    waited: float = 0.0
    warn_at: float = field(default_factory=lambda: _FIRST_WARNING_AFTER)
    begun: float = field(default_factory=time.monotonic)

    @property
    def settled(self) -> bool:
        """True if nothing more will come through the link: the answer has arrived, or its message was interrupted."""
        return self.answer != () or (self.link is not None and not self.link.intact)


class Patience:
    """Wait for calls, with warnings and a time limit.

    Args:
        step_timeout: time that a call may take [s]; None means any.
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
        self._counted = 0.0

    def wait(self, calls: Collection[Call], num_returns: int) -> list[Call]:
        """Wait until at least so many calls are done; all that are. ConnectionError if Ray is gone."""
        while True:
            done = self._done(calls, num_returns)
            if len(done) < len(calls):
                self.count([call for call in calls if call not in done])
            if len(done) >= num_returns:
                return done

    def count(self, calls: Collection[Call]) -> None:
        """Count the time since the last count, a second ago, for calls that are not done. ConnectionError as above."""
        self._cluster.check()
        now, before = time.monotonic(), self._counted
        if now - before < _CHECK_INTERVAL / 2:
            return
        self._counted = now
        for call in calls:
            call.waited += min(now - max(before, call.begun), _CHECK_INTERVAL)
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

    def _done(self, calls: Collection[Call], num_returns: int) -> list[Call]:
        """Return the calls that are done, once there are so many, or after a while."""
        through_pipes = [call for call in calls if call.link is not None]
        through_ray = {call.result: call for call in calls if call.link is None}
        interval = _MIXED_INTERVAL if through_pipes and through_ray else _CHECK_INTERVAL
        end = time.monotonic() + _CHECK_INTERVAL
        while True:
            done = _answered(through_pipes, num_returns, interval)
            missing = min(num_returns - len(done), len(through_ray))
            results = self._cluster.wait(list(through_ray), max(missing, 1), interval if missing > 0 else 0.0)
            done += [through_ray[result] for result in results]
            if len(done) >= num_returns or time.monotonic() >= end:
                return done


def _answered(calls: Sequence[Call], num_returns: int, timeout: float) -> list[Call]:
    """Return the calls whose link has an answer or has ended, once there are so many, or after so many seconds."""
    done = [call for call in calls if call.settled]
    waiting = {call.link.pipe.fileno(): call for call in calls if call.link is not None and not call.settled}
    end = time.monotonic() + timeout
    while waiting:
        ready = wait(waiting, max(end - time.monotonic(), 0.0) if len(done) < num_returns else 0.0)
        done += [waiting.pop(fd) for fd in ready if isinstance(fd, int)]
        if not ready or len(done) >= num_returns:
            break
    return done
