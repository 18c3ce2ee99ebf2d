"""What those who look after a server ask it: whether it lives, whether it takes calls, and which request was which."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from raw import Raw
from waiting import until
from wire import Wire

from internutopia.config import Config
from internutopia.remote.server.users import add_token
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()


@pytest.fixture(scope='module')
def config() -> Config:
    return cart_pole.config(1, seed=0, start=0.0, max_episode_steps=10_000, threads=1)


def probe(url: str, path: str) -> tuple[int, str]:
    """Status of a probe, with the code of the error."""
    answer = Raw(url).http.get(path)
    return answer.status_code, answer.json().get('error', {}).get('code', '')


OK = 200, ''
PROBES = '/health', '/livez', '/readyz'


def test_a_server_that_works(serve: Callable[..., Any], config: Config, tmp_path: Path) -> None:
    file = tmp_path / 'tokens.json'
    add_token(file, 'ada')
    url = serve(config, tokens=file).url
    assert [probe(url, path) for path in PROBES] == [OK] * 3
    assert Raw(url).http.get('/livez').json() == {'status': 'ok'}


@pytest.mark.slow
def test_a_server_without_room(serve: Callable[..., Any], config: Config, worker_pid: Callable[[str], int]) -> None:
    url = serve(config, in_flight=1).url
    session = Raw(url).session(1)
    pid = worker_pid(session.id)
    os.kill(pid, signal.SIGSTOP)
    try:
        with Wire(url) as wire:
            wire.step(session)
            until(lambda: probe(url, '/readyz') != OK)
            assert [probe(url, path) for path in PROBES] == [OK, OK, (503, 'overloaded')]
            assert Raw(url).http.get('/readyz').headers['retry-after']
            os.kill(pid, signal.SIGCONT)
            assert wire.reply().status == 200
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: probe(url, '/readyz') == OK)
    session.close()


@pytest.mark.nightly
def test_a_server_that_can_start_no_workers(serve_process: Callable[..., Any], config: Config) -> None:
    """First it has no files left; then the process is killed that workers are forked from."""
    server = serve_process(config, '--user-sessions', '8')
    raw, process = Raw(server.url), psutil.Process(server.process.pid)
    session = raw.session(1)
    limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (process.num_fds() + 1, limits[1]))  # a session needs two
    assert raw.post('/session/create').fault == (503, 'overloaded')
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limits)
    (forks,) = (child for child in process.children() if 'forkserver' in ' '.join(child.cmdline()))
    forks.kill()
    until(lambda: not forks.is_running() or forks.status() == psutil.STATUS_ZOMBIE)
    until(lambda: probe(server.url, '/readyz') == OK)
    assert session.step().status == 200 and raw.session(1).step().status == 200
    assert 'Traceback' not in server.log.read_text()


@pytest.mark.parametrize('given', ['4bf92f3577b34da6', 'run-7:step.12_a', 'x' * 100])
def test_ids_of_requests(
    serve: Callable[..., Any], config: Config, caplog: pytest.LogCaptureFixture, given: str
) -> None:
    answer = Raw(serve(config).url).get('/nothing', headers={'X-Request-Id': given})
    assert answer.fault == (404, 'not_found') and answer.headers['x-request-id'] == given
    until(lambda: f'request={given} user=local' in caplog.text)


@pytest.mark.parametrize('given', ['', 'x' * 101, 'two words', 'a\tb', 'user=root', '"', 'ünïcode'])
def test_ids_that_would_spoil_the_log(serve: Callable[..., Any], config: Config, given: str) -> None:
    answer = Raw(serve(config).url).get('/nothing', headers=[(b'X-Request-Id', given.encode())])
    assert answer.fault == (404, 'not_found') and len(answer.headers['x-request-id']) == 16
