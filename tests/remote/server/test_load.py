"""Many sessions at work at the same time: none fails, and none is left behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from raw import Raw

from internutopia.core.config import Config
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

pytest.importorskip('rich')
from internutopia.bench.service import put_load_on

import_extensions()

SESSIONS, ENVS, STEP_SIZE = 16, 4, 10


@pytest.fixture
def config() -> Config:
    return cart_pole.config(ENVS, seed=0)


def test_all_sessions_get_their_share(serve_process: Callable[..., Any], config: Config) -> None:
    server = serve_process(config, '--user-sessions', str(SESSIONS), '--requests-per-second', '1e6', '--quiet')
    load = put_load_on(server.url, SESSIONS, ENVS, STEP_SIZE, seconds=3.0)
    assert load.errors == 0 and server.log.read_text() == ''
    assert len(load.calls) == SESSIONS and load.calls.min() > 0
    assert load.fairness > 1 / 3
    assert 0.0 < load.latency(50) <= load.latency(99)
    metrics = Raw(server.url).http.get('/metrics').text
    steps = re.search(r'^internutopia_env_steps_total (\S+)', metrics, re.MULTILINE)
    assert steps is not None
    most = load.calls.sum() * ENVS * STEP_SIZE  # less where an episode ended on the way
    assert 0.5 * most < float(steps[1]) <= most
    assert 'internutopia_worker_deaths_total 0.0' in metrics and 'status="200"' in metrics


def test_refused_requests_count_as_errors(serve: Callable[..., Any], config: Config) -> None:
    """Also if the client tries again until it succeeds: otherwise the test above could not fail."""
    load = put_load_on(serve(config, requests_per_second=2.0, burst=2).url, 2, ENVS, STEP_SIZE, seconds=0.5)
    assert load.errors > 0 and load.calls.min() > 0


def test_nobody_waits_for_a_session_that_breaks_off(serve: Callable[..., Any], config: Config) -> None:
    load = put_load_on(serve(config, max_step_size=1).url, 2, ENVS, STEP_SIZE, seconds=60.0)
    assert load.errors >= 2 and load.calls.sum() == 0
