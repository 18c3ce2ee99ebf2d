"""Service with many users at work: how long a call takes, and whether anybody is refused or left behind."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

import internutopia.remote as remote  # what is heavy in it is imported when the row is measured
from internutopia.bench.measure import Row
from internutopia_extension.learning_tasks import cart_pole

SESSIONS, ENVS, STEP_SIZE = 32, 16, 10
_ACTIONS = 64  # that a session repeats
_PATIENCE = 120.0  # s, for all sessions to be made


@dataclass(frozen=True)
class Load:
    """Figures of clients that all stepped their sessions at the same time."""

    errors: int
    """Requests that failed, also if the client sent them again with success, and sessions that broke off."""
    latencies: list[NDArray[np.float64]]
    """Time of each call `(calls,)` [s], by session."""
    seconds: float
    """Duration [s]."""

    @property
    def calls(self) -> NDArray[np.int64]:
        """Number of calls of each session."""
        return np.array([len(each) for each in self.latencies])

    @property
    def fairness(self) -> float:
        """Calls of the session that made the fewest, by the median over all."""
        return float(self.calls.min() / max(1.0, np.median(self.calls)))

    def latency(self, percent: float) -> float:
        """Percentile of the time of a call, over the calls of all sessions [s]."""
        return float(np.percentile(np.concatenate(self.latencies), percent))


def put_load_on(url: str, sessions: int, num_envs: int, step_size: int, seconds: float) -> Load:
    """Step sessions of a server of cart-poles, each in a thread with its own client, one call after the other.

    Args:
        url: of the server, whose limits must allow it.
        sessions: number of sessions.
        num_envs: envs of a session.
        step_size: steps of a call.
        seconds: time from the moment at which all sessions are ready [s].
    """
    actions = np.random.default_rng(0).uniform(-0.5, 0.5, (_ACTIONS, num_envs, 1)).astype(np.float32)
    ready = threading.Barrier(sessions, timeout=_PATIENCE)

    def use() -> tuple[NDArray[np.float64], bool]:
        """Time of each call [s], and whether the session broke off."""
        times: list[float] = []
        try:
            with closing(remote.VectorEnv(num_envs, url, step_size=step_size, autoreset_mode='SameStep')) as envs:
                envs.reset()
                ready.wait()
                begin = now = time.perf_counter()
                while now < begin + seconds:
                    envs.step(actions[len(times) % _ACTIONS])
                    times.append(time.perf_counter() - now)
                    now += times[-1]
            return np.array(times), False
        except (remote.RemoteError, threading.BrokenBarrierError):
            ready.abort()  # or the others would wait for this one
            return np.array(times), True

    with _failures() as failures, ThreadPoolExecutor(sessions) as threads:
        outcomes = [each.result() for each in [threads.submit(use) for _ in range(sessions)]]
    broken = sum(broken for _, broken in outcomes)
    return Load(failures.count + broken, [times for times, _ in outcomes], seconds)


def service(quick: bool) -> list[Row]:
    """32 sessions of 16 cart-poles, ten steps a call, for a minute."""
    sessions, seconds = (8, 1.0) if quick else (SESSIONS, 60.0)
    options = ('--user-sessions', str(sessions), '--requests-per-second', '1e6', '--burst', '1000000')
    with remote.local_server(cart_pole.config(ENVS, seed=0), *options) as url:
        load = put_load_on(url, sessions, ENVS, STEP_SIZE, seconds)
    what = f'service, {sessions} sessions of {ENVS} cart-poles, {STEP_SIZE} steps a call, {seconds:g} s'
    rate = float(load.calls.sum() / load.seconds)
    return [
        Row(f'{what}: requests that failed', 'errors', load.errors, bound=0.0, limit='at most'),
        Row(f'{what}: median time of a call', 'ms', 1000.0 * load.latency(50)),
        Row(f'{what}: 99th percentile', 'ms', 1000.0 * load.latency(99)),
        Row(f'{what}: throughput', 'calls/s', rate, note=f'{rate * ENVS * STEP_SIZE:.0f} env steps/s'),
        Row(f'{what}: calls of the slowest session by the median', 'of 1', load.fairness),
    ]


class _Failures(logging.Handler):
    """Counts the requests of which a client logs that they failed."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.count = 0

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


@contextmanager
def _failures() -> Iterator[_Failures]:
    logger, handler = logging.getLogger('internutopia.remote.client'), _Failures()
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
