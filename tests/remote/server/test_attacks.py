"""One user who takes all that can be had: others notice nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from raw import Raw, RawSession
from waiting import until
from wire import Wire, answered

from internutopia.config import Config
from internutopia.remote.protocol import KEY_HEADER, PREFIX
from internutopia.remote.server.users import add_token
from internutopia.util.encoding import MSGPACK
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 2
SHARE, WAITING = 64, 4  # of a user, of a session: the defaults
STEP = f'{PREFIX}/episode/vectorized_step'


@pytest.fixture(scope='module')
def config() -> Config:
    return cart_pole.config(ENVS, seed=0, start=0.0, max_episode_steps=10_000, threads=1)


@pytest.fixture(scope='module')
def tokens(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    file = tmp_path_factory.mktemp('tokens') / 'tokens.json'
    return file, add_token(file, 'ada'), add_token(file, 'bob')


@pytest.fixture(scope='module')
def url(serve: Callable[..., Any], config: Config, tokens: tuple[Path, str, str]) -> str:
    return serve(config, tokens=tokens[0]).url


@pytest.fixture
def ada(url: str, tokens: tuple[Path, str, str]) -> Iterator[RawSession]:
    session = Raw(url, tokens[1]).session(ENVS)
    yield session
    session.close()


@pytest.fixture
def bob(url: str, tokens: tuple[Path, str, str]) -> Raw:
    return Raw(url, tokens[2])


def all_is_well(caller: Raw) -> None:
    """Somebody makes a session, steps it, looks and closes it; every reply is 200."""
    session = caller.session(ENVS)
    for _ in range(5):
        assert session.step().status == 200
    assert session.state().status == caller.get('/status').status == session.close().status == 200


@contextmanager
def busy(session: RawSession, pid: int) -> Iterator[Wire]:
    """A call of a session that is at work all the time; gives its connection."""
    os.kill(pid, signal.SIGSTOP)
    try:
        with Wire(str(session.caller.http.base_url), token=token_of(session)) as wire:
            wire.step(session)
            until(lambda: session.caller.get('/status').body['sessions'][0]['state'] == 'busy')
            yield wire
    finally:
        os.kill(pid, signal.SIGCONT)


def requests(caller: Raw) -> list[str]:
    """How many requests there were so far, but for this one's like."""
    answer = caller.http.get('/metrics')
    assert answer.status_code == 200
    lines = answer.text.splitlines()
    return [line for line in lines if line.startswith('internutopia_requests_total') and '/metrics' not in line]


def stands_still(look: Callable[[], list[str]]) -> None:
    """Wait until something is there and stays the same for a while."""
    seen: list[list[str]] = [[]]

    def same() -> bool:
        time.sleep(0.2)
        seen.append(look())
        return seen[-1] == seen[-2] != []

    until(same)


def token_of(session: RawSession) -> str:
    return session.caller.http.headers['authorization'].removeprefix('Bearer ')


@pytest.mark.slow
def test_slow_bodies(url: str, tokens: tuple[Path, str, str], ada: RawSession, bob: Raw) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(Wire(url, token=tokens[1])) for _ in range(260)]
        for wire in slow:
            wire.head('POST', STEP, f'Content-Type: {MSGPACK}', 'Content-Length: 1000').send(b'x')
        all_is_well(bob)
        refused = answered(slow, len(slow) - SHARE)
        assert len(refused) == len(slow) - SHARE
        for wire in refused:
            assert wire.reply().fault == (429, 'busy')
        assert ada.state().fault == (429, 'busy')
    until(lambda: ada.state().status == 200)  # when they have gone


@pytest.mark.slow
def test_pictures_of_a_busy_session(
    url: str, tokens: tuple[Path, str, str], ada: RawSession, bob: Raw, worker_pid: Callable[[str], int]
) -> None:
    with ExitStack() as stack:
        stack.enter_context(busy(ada, worker_pid(ada.id)))
        looking = [stack.enter_context(Wire(url, token=tokens[1])) for _ in range(300)]
        for wire in looking:
            wire.head('GET', f'{PREFIX}/session/{ada.id}/picture')
        all_is_well(bob)
        refused = answered(looking, len(looking) - 1 - WAITING)
        assert len(refused) == len(looking) - 1 - WAITING
        for wire in refused:
            assert wire.reply().fault == (429, 'busy')
        assert ada.state().status == 200


@pytest.mark.slow
def test_repeated_requests_to_a_busy_session(
    url: str, tokens: tuple[Path, str, str], ada: RawSession, bob: Raw, worker_pid: Callable[[str], int]
) -> None:
    key = f'{KEY_HEADER}: same'
    pid = worker_pid(ada.id)
    with ExitStack() as stack:
        first = stack.enter_context(Wire(url, token=tokens[1]))
        os.kill(pid, signal.SIGSTOP)
        stack.callback(os.kill, pid, signal.SIGCONT)
        first.step(ada, key)
        until(lambda: ada.caller.get('/status').body['sessions'][0]['state'] == 'busy')
        again = [stack.enter_context(Wire(url, token=tokens[1])) for _ in range(300)]
        for wire in again:
            wire.step(ada, key)
        all_is_well(bob)
        refused = answered(again, len(again) - WAITING)
        assert len(refused) == len(again) - WAITING
        for wire in refused:
            assert wire.reply().fault == (429, 'busy')
        os.kill(pid, signal.SIGCONT)
        for wire in [first, *set(again) - set(refused)]:
            assert wire.reply().status == 200
    assert ada.state().body['steps'] == ENVS


@pytest.mark.slow
def test_who_waits_for_a_client_takes_no_place(
    serve: Callable[..., Any], config: Config, tokens: tuple[Path, str, str]
) -> None:
    """One place for all: a body that does not come, and a reply that nobody takes, leave it to others."""
    url = serve(config, tokens=tokens[0], in_flight=1).url
    bob = Raw(url, tokens[2])
    with Wire(url, token=tokens[1]) as sending, Wire(url, token=tokens[1]) as reading:
        sending.head('POST', STEP, f'Content-Type: {MSGPACK}', 'Content-Length: 1000').send(b'x')
        for _ in range(300):
            reading.head('GET', '/openapi.json')  # 15 MB in all
        stands_still(lambda: requests(bob))
        all_is_well(bob)


def test_a_place_is_needed_again_when_the_body_has_come(
    serve: Callable[..., Any], config: Config, tokens: tuple[Path, str, str], worker_pid: Callable[[str], int]
) -> None:
    url = serve(config, tokens=tokens[0], in_flight=1).url
    ada = Raw(url, tokens[1]).session(ENVS)
    with Wire(url, token=tokens[2]) as late:
        late.head('POST', STEP, f'Content-Type: {MSGPACK}', 'Content-Length: 1')
        os.kill(worker_pid(ada.id), signal.SIGSTOP)
        try:
            with Wire(url, token=tokens[1]) as at_work:
                at_work.step(ada)
                until(lambda: Raw(url).http.get('/readyz').status_code == 503)
                assert late.send(b'x').reply().fault == (503, 'overloaded')
        finally:
            os.kill(worker_pid(ada.id), signal.SIGCONT)
    until(lambda: ada.close().status == 200)
