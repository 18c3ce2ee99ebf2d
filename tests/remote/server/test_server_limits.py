"""Too much of something: refused with a word on when to come again; nobody else notices."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from raw import Answer, Raw
from waiting import PATIENCE, FakeTime, alive, until

from internutopia.config import Config
from internutopia.remote.server.limits import RateLimit
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.users import add_token
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 2
IDLE_TIMEOUT = 1000.0  # s


@pytest.fixture(scope='module')
def config() -> Config:
    return cart_pole.config(ENVS, seed=0, start=0.0, threads=1)


@pytest.fixture
def users(tmp_path: Path) -> tuple[Path, list[str]]:
    file = tmp_path / 'tokens.json'
    return file, [add_token(file, name) for name in ('ada', 'bob')]


@contextmanager
def standing_still(pid: int) -> Iterator[Callable[[], None]]:
    """A worker in the middle of a call for as long as wanted; gives what lets it go on."""
    os.kill(pid, signal.SIGSTOP)

    def go_on() -> None:
        os.kill(pid, signal.SIGCONT)

    try:
        yield go_on
    finally:
        go_on()


def test_sessions_and_envs(serve: Callable[..., Any], config: Config, users: tuple[Path, list[str]]) -> None:
    file, tokens = users
    served = serve(config, tokens=file, user_sessions=2, user_envs=5, max_sessions=3)
    ada, bob = (Raw(served.url, token) for token in tokens)
    assert ada.get('/version').status == 200
    limits = ada.post('/session/create', {'num_envs': 6})
    assert limits.fault == (429, 'too_many_envs') and '5 envs, you have 0 and request 6 more' in limits.message
    first = ada.session(3)
    assert ada.post('/session/create', {'num_envs': 3}).fault == (429, 'too_many_envs')
    second = ada.session(2)
    refused = ada.post('/session/create', {'num_envs': 1})
    assert refused.fault == (429, 'too_many_sessions') and int(refused.headers['retry-after']) >= 1
    his = bob.session(5)  # nobody else's envs count
    crowded = bob.post('/session/create', {'num_envs': 1})
    assert crowded.fault == (429, 'too_many_envs')
    his.close()
    bob.session(1)
    full = bob.post('/session/create', {'num_envs': 1})
    assert full.fault == (503, 'overloaded') and '3 sessions' in full.message and 'retry-after' in full.headers
    first.close()
    assert ada.session(1).state().status == 200 and second.step().status == 200


def test_the_bucket() -> None:
    now = [0.0]
    limit = RateLimit(rate=2.0, burst=3, of='of a user', clock=lambda: now[0])

    def taken(user: str) -> bool:
        try:
            limit.take(user)
        except Exception as error:
            assert getattr(error, 'code', None) == 'rate_limited'
            return False
        return True

    assert [taken('ada') for _ in range(4)] == [True, True, True, False]
    assert taken('bob')  # who has one of his own
    now[0] = 0.4
    assert not taken('ada')
    now[0] = 0.5
    assert taken('ada') and not taken('ada')
    now[0] = 100.0
    assert [taken('ada') for _ in range(4)] == [True, True, True, False]


def test_rate(serve: Callable[..., Any], config: Config, users: tuple[Path, list[str]]) -> None:
    file, tokens = users
    served = serve(config, tokens=file, requests_per_second=0.01, burst=5)
    ada, bob = (Raw(served.url, token) for token in tokens)
    assert [ada.get('/sessions').status for _ in range(7)] == [200] * 5 + [429] * 2
    refused = ada.get('/sessions')
    assert refused.fault == (429, 'rate_limited') and 50 < int(refused.headers['retry-after']) <= 100
    assert bob.get('/sessions').status == 200 and ada.get('/version').status == 200
    metrics = bob.http.get('/metrics').text
    assert 'internutopia_rejected_total{reason="rate_limited"} 3.0' in metrics


def test_calls_that_wait(serve: Callable[..., Any], config: Config, worker_pid: Callable[[str], int]) -> None:
    raw = Raw(serve(config, waiting=2).url)
    session, other = raw.session(ENVS), raw.session(ENVS)
    with ThreadPoolExecutor(6) as threads, standing_still(worker_pid(session.id)) as go_on:
        calls: list[Future[Answer]] = [threads.submit(session.step) for _ in range(6)]
        refused = [each.result() for _, each in zip(range(3), as_completed(calls, PATIENCE), strict=False)]
        for answer in refused:
            assert answer.fault == (429, 'busy') and 'retry-after' in answer.headers
        assert other.step().status == 200  # one session does not stall another
        assert other.reset().status == 200 and raw.get('/status').status == 200
        go_on()
        done = [each.result(PATIENCE) for each in calls]
    steps = sorted(answer.body['steps'][0] for answer in done if answer.status == 200)
    assert steps == [1, 2, 3]
    assert session.state().body['steps'] == 3 * ENVS
    for each in (session, other):
        each.close()


def test_requests_at_work(serve: Callable[..., Any], config: Config, worker_pid: Callable[[str], int]) -> None:
    raw = Raw(serve(config, in_flight=2).url)
    session = raw.session(ENVS)
    with ThreadPoolExecutor(3) as threads, standing_still(worker_pid(session.id)) as go_on:
        calls = [threads.submit(session.step) for _ in range(3)]
        answer = next(as_completed(calls, PATIENCE)).result()
        assert answer.fault == (503, 'overloaded') and 'retry-after' in answer.headers
        assert raw.get('/version').status == 200 and raw.http.get('/health').status_code == 200
        go_on()
        assert sorted(each.result(PATIENCE).status for each in calls) == [200, 200, 503]
    session.close()


def test_a_call_that_takes_too_long(
    serve: Callable[..., Any],
    config: Config,
    worker_pid: Callable[[str], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = Raw(serve(config, call_timeout=PATIENCE).url)
    session = raw.session(ENVS)
    pid = worker_pid(session.id)
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(Settings, 'call_timeout', property(lambda _: 0.5), raising=False)  # not yet for its reset
    assert session.step().fault == (503, 'session_failed')
    until(lambda: not alive(pid))
    assert session.step().fault == (503, 'session_failed')
    assert 'internutopia_worker_deaths_total 1.0' in raw.http.get('/metrics').text


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """The clock of sessions."""
    fake = FakeTime()
    monkeypatch.setattr('internutopia.remote.server.user_session.time', fake)
    return fake


def test_idle_sessions_end(
    serve: Callable[..., Any], config: Config, worker_pid: Callable[[str], int], fake_time: FakeTime
) -> None:
    raw = Raw(serve(config, idle_timeout=IDLE_TIMEOUT).url)
    used, idle = raw.session(ENVS), raw.session(ENVS)
    pid = worker_pid(idle.id)
    for _ in range(2):
        fake_time.skip(0.6 * IDLE_TIMEOUT)
        assert used.step().status == 200
        assert raw.get('/status').status == 200  # looking does not count
    until(lambda: idle.state().status == 404)
    answer = idle.step()
    assert answer.fault == (404, 'unknown_session') and 'was not used for 1000 s and has ended' in answer.message
    until(lambda: not alive(pid))
    assert [each['session_id'] for each in raw.get('/sessions').body['sessions']] == [used.id]
    used.close()


def test_a_call_is_no_idleness(
    serve: Callable[..., Any], config: Config, worker_pid: Callable[[str], int], fake_time: FakeTime
) -> None:
    raw = Raw(serve(config, idle_timeout=IDLE_TIMEOUT).url)
    session, idle = raw.session(ENVS), raw.session(ENVS)
    with ThreadPoolExecutor(1) as threads, standing_still(worker_pid(session.id)) as go_on:
        call = threads.submit(session.step)
        until(lambda: session.state().body['idle'] == 0.0)
        fake_time.skip(1.2 * IDLE_TIMEOUT)
        until(lambda: idle.state().status == 404)
        (status,) = raw.get('/status').body['sessions']
        assert status['session_id'] == session.id and status['state'] == 'busy' and status['age'] > IDLE_TIMEOUT
        go_on()
        assert call.result(PATIENCE).status == 200
