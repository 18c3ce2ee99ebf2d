"""Many sessions at work at the same time: none fails, and none is left behind."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from raw import Raw
from waiting import PATIENCE

import internutopia.remote as remote
from internutopia.config import Config
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

pytest.importorskip('rich')
from benchmarks.rows.service import Load, put_load_on

import_extensions()

SESSIONS, ENVS, STEP_SIZE = 16, 4, 10
SHARE, UNFAIR = 20, 10  # calls of a session, and how many times as many the others never make: a busy machine is uneven


@pytest.fixture
def config() -> Config:
    return cart_pole.config(ENVS, seed=0)


@pytest.mark.nightly
def test_many_sessions_at_work_fail_nowhere(serve_process: Callable[..., Any], config: Config) -> None:
    server = serve_process(config, '--user-sessions', str(SESSIONS), '--requests-per-second', '1e6', '--quiet')
    load = put_load_on(server.url, SESSIONS, ENVS, STEP_SIZE, seconds=3.0)
    assert load.errors == 0 and server.log.read_text() == ''
    assert len(load.calls) == SESSIONS and load.calls.min() > 0
    assert 0.0 < load.fairness <= 1.0
    assert 0.0 < load.latency(50) <= load.latency(99)
    metrics = Raw(server.url).http.get('/metrics').text
    steps = re.search(r'^internutopia_env_steps_total (\S+)', metrics, re.MULTILINE)
    assert steps is not None
    most = load.calls.sum() * ENVS * STEP_SIZE  # less where an episode ended on the way
    assert 0.5 * most < float(steps[1]) <= most
    assert 'internutopia_worker_deaths_total 0.0' in metrics and 'status="200"' in metrics


@pytest.mark.nightly
def test_all_sessions_get_their_share(serve_process: Callable[..., Any], config: Config) -> None:
    """Each goes on until the last one has made its calls; none makes many times as many meanwhile."""
    options = ('--user-sessions', str(SESSIONS), '--requests-per-second', '1e6', '--burst', '1000000', '--quiet')
    url = serve_process(config, *options).url
    ready = threading.Barrier(SESSIONS, timeout=PATIENCE)
    calls, actions = np.zeros(SESSIONS, int), np.zeros((ENVS, 1), np.float32)

    def use(session: int) -> None:
        with closing(remote.VectorEnv(ENVS, url, step_size=STEP_SIZE, autoreset_mode='SameStep')) as envs:
            envs.reset()
            ready.wait()
            while calls.min() < SHARE and calls[session] < UNFAIR * SHARE:
                envs.step(actions)
                calls[session] += 1

    with ThreadPoolExecutor(SESSIONS) as threads:
        for each in [threads.submit(use, session) for session in range(SESSIONS)]:
            each.result()
    assert calls.max() < UNFAIR * SHARE


def test_fairness_is_that_of_the_slowest_session() -> None:
    assert Load(0, [np.ones(calls) for calls in (3, 1, 2)], 1.0).fairness == 0.5


@pytest.mark.slow
def test_refused_requests_count_as_errors(serve: Callable[..., Any], config: Config) -> None:
    """Also if the client tries again until it succeeds: otherwise the test above could not fail."""
    load = put_load_on(serve(config, requests_per_second=2.0, burst=2).url, 2, ENVS, STEP_SIZE, seconds=0.5)
    assert load.errors > 0 and load.calls.min() > 0


def test_nobody_waits_for_a_session_that_breaks_off(serve: Callable[..., Any], config: Config) -> None:
    load = put_load_on(serve(config, max_step_size=1).url, 2, ENVS, STEP_SIZE, seconds=60.0)
    assert load.errors >= 2 and load.calls.sum() == 0
