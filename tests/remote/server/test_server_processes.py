"""Processes that are killed, and servers that are told to stop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from raw import Raw, RawSession
from waiting import PATIENCE, alive, until
from wire import Wire

from internutopia.config import Config
from internutopia.remote.protocol import PREFIX
from internutopia.remote.server.serve import listen
from internutopia.remote.server.serve import serve as run_server
from internutopia.remote.server.server_settings import Settings
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 2


@pytest.fixture(scope='module')
def config() -> Config:
    return cart_pole.config(ENVS, seed=0, start=0.0, max_episode_steps=10_000, threads=1)


@pytest.fixture(scope='module')
def raw(serve: Callable[..., Any], config: Config) -> Raw:
    return Raw(serve(config, user_sessions=8).url)


@pytest.fixture
def other(raw: Raw) -> Iterator[RawSession]:
    """A session that must not notice anything."""
    session = raw.session(ENVS)
    session.step()
    yield session
    assert session.step().body['steps'].tolist() == [2, 2]
    session.close()


def pids(log: Path) -> list[int]:
    return [int(pid) for pid in re.findall(r'pid=(\d+)', log.read_text())]


def test_a_killed_worker(raw: Raw, other: RawSession, worker_pid: Callable[[str], int]) -> None:
    session = raw.session(ENVS)
    os.kill(worker_pid(session.id), signal.SIGKILL)
    for answer in (session.step(), session.reset(), session.state()):
        assert answer.fault == (503, 'session_failed') and 'create a new one' in answer.message
        assert 'retry-after' not in answer.headers  # it would not help
    assert session.close().body == {'closed': True}
    assert raw.session(ENVS).close().status == 200


def test_a_worker_killed_in_a_call(raw: Raw, other: RawSession, worker_pid: Callable[[str], int]) -> None:
    session = raw.session(ENVS)
    pid = worker_pid(session.id)
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(session.step, key=key) for key in ('a', 'a', 'b')]
        until(lambda: any(each['state'] == 'busy' for each in raw.get('/status').body['sessions']))
        assert other.state().status == 200
        os.kill(pid, signal.SIGKILL)
        for call in calls:
            assert call.result(PATIENCE).fault == (503, 'session_failed')


def test_a_worker_killed_unseen(raw: Raw, worker_pid: Callable[[str], int]) -> None:
    """Nobody calls, and yet its envs do not count any more."""
    session = raw.session(ENVS)
    os.kill(worker_pid(session.id), signal.SIGKILL)
    until(lambda: not raw.get('/sessions').body['sessions'])
    assert session.step().fault == (503, 'session_failed')


def test_a_worker_that_fails(raw: Raw, other: RawSession, caplog: pytest.LogCaptureFixture) -> None:
    """An exception is told to the log, not to the client."""
    from internutopia.remote.server.user_session import Session

    async def call(self: Session, name: str, media_type: str, **arguments: Any) -> bytes:
        return await original(self, name, media_type, **{**arguments, 'autoreset': None, 'actions': 'nonsense'})

    session, original = raw.session(ENVS), Session.call
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, 'call', call)
        answer = session.step()
    assert answer.fault == (503, 'session_failed')
    assert 'Traceback' in caplog.text and f'session={session.id} user=local failed' in caplog.text


def test_workers_have_no_more_than_they_need(raw: Raw, other: RawSession, worker_pid: Callable[[str], int]) -> None:
    worker = psutil.Process(worker_pid(other.id))
    assert worker.num_threads() <= 2  # physics, and who waits for the end of the server
    parent = worker.parent()
    assert parent is not None and parent.num_threads() == 1
    libraries = {Path(each.path).name for each in parent.memory_maps()}
    assert not any(name.startswith(('libEGL', 'libGL', 'libOSMesa')) for name in libraries)
    worker.send_signal(signal.SIGTERM)  # meant for the server, which decides
    worker.send_signal(signal.SIGINT)


def test_a_session_closed_in_a_call(raw: Raw, other: RawSession, worker_pid: Callable[[str], int]) -> None:
    session = raw.session(ENVS)
    pid = worker_pid(session.id)
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(session.step)
        until(lambda: any(each['state'] == 'busy' for each in raw.get('/status').body['sessions']))
        assert session.close().body == {'closed': True}
        answer = call.result(PATIENCE)
    assert answer.fault == (404, 'unknown_session') and 'was closed' in answer.message
    until(lambda: not alive(pid))


@pytest.mark.nightly
def test_sigterm_lets_calls_finish(serve_process: Callable[..., Any], config: Config) -> None:
    """Meanwhile the server answers: that it is alive, that it is not ready, and that others have to come later."""
    server = serve_process(config)
    raw = Raw(server.url)
    sessions = [raw.session(ENVS) for _ in range(2)]
    workers = pids(server.log)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGSTOP)
    with ThreadPoolExecutor(2) as threads:
        at_work, waiting = (threads.submit(sessions[0].step) for _ in range(2))
        until(lambda: raw.get('/status').body['sessions'][0]['state'] == 'busy')
        server.process.send_signal(signal.SIGTERM)
        until(lambda: Raw(server.url).http.get('/readyz').status_code == 503)
        assert [Raw(server.url).http.get(path).status_code for path in ('/health', '/livez')] == [503, 200]
        for late in (sessions[1].step(), raw.post('/session/create')):
            assert late.fault == (503, 'shutting_down') and 'retry-after' in late.headers
        os.kill(workers[0], signal.SIGCONT)
        answers = [call.result(PATIENCE) for call in (at_work, waiting)]
    assert sorted(answer.status for answer in answers) == [200, 503]
    refused = next(answer for answer in answers if answer.status == 503)
    assert refused.fault == (503, 'shutting_down') and 'retry-after' in refused.headers
    assert server.process.wait(PATIENCE) == 0
    assert not any(alive(pid) for pid in workers)
    assert 'Traceback' not in server.log.read_text()


@pytest.mark.nightly
def test_sigterm_waits_for_no_slow_client(serve_process: Callable[..., Any], config: Config) -> None:
    server = serve_process(config)
    with Wire(server.url) as sending, Wire(server.url) as silent:
        sending.head('POST', f'{PREFIX}/session/create', 'Content-Type: application/json', 'Content-Length: 2').send(
            b'{'
        )
        assert Raw(server.url).get('/version').status == 200  # so the other two have arrived
        server.process.send_signal(signal.SIGTERM)
        assert sending.reply().fault == (503, 'shutting_down') and silent.ended()
    assert server.process.wait(PATIENCE) == 0 and 'Traceback' not in server.log.read_text()


@pytest.mark.slow
def test_no_worker_survives_its_server(serve_process: Callable[..., Any], config: Config) -> None:
    """One is idle, one in the middle of a long call."""
    server = serve_process(config)
    raw = Raw(server.url)
    busy, _ = raw.session(1000), raw.session(ENVS)
    workers = pids(server.log)
    call = threading.Thread(target=lambda: pytest.raises(httpx.HTTPError, busy.step, step_size=1000))
    call.start()
    until(lambda: any(each['state'] == 'busy' for each in raw.get('/status').body['sessions']))
    server.process.kill()
    until(lambda: not any(alive(pid) for pid in workers))
    call.join(PATIENCE)
    assert server.process.wait(PATIENCE) == -signal.SIGKILL


@pytest.mark.slow
def test_ctrl_c_ends_quietly_and_the_log_has_one_line_a_request(
    serve_process: Callable[..., Any], config: Config
) -> None:
    server = serve_process(config)
    Raw(server.url).session(ENVS).step()
    os.killpg(server.process.pid, signal.SIGINT)  # as a terminal sends it, to workers too
    assert server.process.wait(PATIENCE) == 0
    assert 'Traceback' not in server.log.read_text()
    lines = [dict(re.findall(r'(\w+)=(\S+)', line)) for line in server.log.read_text().splitlines()]
    requests = [line for line in lines if 'request' in line]
    routes = [line['route'].removeprefix(PREFIX) for line in requests]
    assert routes == ['/session/create', '/episode/create', '/episode/vectorized_reset', '/episode/vectorized_step']
    last = requests[-1]
    assert last['user'] == 'local' and last['status'] == '200' and float(last['ms']) > 0
    assert int(last['received']) > 50 and int(last['sent']) > 50 and last['level'] == 'INFO'


@pytest.mark.slow
def test_a_config_that_does_not_work(config: Config, tmp_path: Path) -> None:
    (task,) = config.task_configs

    def broken(**changes: Any) -> Config:
        return config.update(task_configs=[task.update(robots=[task.robots[0].update(**changes)])])

    with pytest.raises(ValueError, match="has no batched controller 'actuators'"):
        run_server(broken(controllers=[]), '127.0.0.1', 0, None, Settings())
    path = tmp_path / 'broken.yaml'
    broken(usd_path='nowhere.xml').to_yaml(path)
    command = [sys.executable, '-c', 'from internutopia.cli import main; main()', 'serve', str(path), '--port', '0']
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2 and 'nowhere.xml' in ended.stderr and 'Traceback' not in ended.stderr
    assert ended.stdout == ''


def test_a_port_that_is_taken(raw: Raw) -> None:
    port = raw.http.base_url.port
    assert port is not None
    with pytest.raises(OSError, match='Address already in use') as caught:
        listen('127.0.0.1', port, True)
    assert caught.value.filename == f'127.0.0.1:{port}'
