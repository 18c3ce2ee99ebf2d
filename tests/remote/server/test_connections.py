"""Connections that are slow, endless or too many: they end, and others get their replies."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from raw import Raw
from waiting import FakeTime, until
from wire import Wire, answered

from internutopia.config import Config
from internutopia.remote.protocol import PREFIX
from internutopia.remote.server.limits import origin
from internutopia.remote.server.users import add_token
from internutopia.util.encoding import MSGPACK
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

STEP = f'{PREFIX}/episode/vectorized_step'
TIMEOUT = 1000.0  # s
HALF = b'GET /health HTTP/1.1\r\nHost: local'
WHOLE = HALF + b'host\r\n\r\n'
REPLIES = 300  # of 50 kB
ENDLESS = 64 << 20  # bytes, of something that has no end


@pytest.fixture(scope='module')
def config() -> Config:
    return cart_pole.config(1, seed=0, start=0.0, max_episode_steps=10_000, threads=1)


@pytest.fixture(scope='module')
def tokens(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    file = tmp_path_factory.mktemp('tokens') / 'tokens.json'
    return file, add_token(file, 'ada')


@pytest.fixture(scope='module')
def served(serve: Callable[..., Any], config: Config) -> Any:
    return serve(config, header_timeout=TIMEOUT, reply_timeout=TIMEOUT, call_timeout=1e9)


@pytest.fixture(scope='module')
def clock(served: Any) -> FakeTime:
    """The clock of the server, which can be moved on."""
    clock = FakeTime()
    served.loop.time = clock.monotonic
    return clock


def slow(url: str) -> float:
    """Connections that were ended because they were slow."""
    value = re.search(r'rejected_total{reason="slow"} (\S+)', Raw(url).http.get('/metrics').text)
    return 0.0 if value is None else float(value[1])


def end_of(wire: Wire, clock: FakeTime, data: bytes = b'') -> bool:
    """Move the clock on, again and again, until the server ends a connection on which meanwhile data comes."""

    def over() -> bool:
        clock.skip(0.6 * TIMEOUT)
        if data:
            wire.floods(data, 1)
        return wire.over()

    until(over)
    return True


@pytest.mark.parametrize('data', [b'', HALF])
@pytest.mark.parametrize('requests', [0, 1])
def test_a_header_that_does_not_come(served: Any, clock: FakeTime, requests: int, data: bytes) -> None:
    with Wire(served.url) as wire:
        for _ in range(requests):
            assert wire.head('GET', '/health').reply().status == 200
        assert end_of(wire.send(data), clock)


def test_a_header_in_drops(served: Any, clock: FakeTime) -> None:
    before = slow(served.url)
    with Wire(served.url) as wire:
        assert end_of(wire.send(HALF), clock, b'x')
    assert slow(served.url) == before + 1


def test_a_call_that_takes_its_time_is_waited_for(
    served: Any, clock: FakeTime, worker_pid: Callable[[str], int]
) -> None:
    raw = Raw(served.url)
    session = raw.session(1)
    pid = worker_pid(session.id)
    os.kill(pid, signal.SIGSTOP)
    try:
        with Wire(served.url) as wire, Wire(served.url) as idle:
            wire.step(session).send(HALF)
            until(lambda: raw.get('/status').body['sessions'][0]['state'] == 'busy')
            assert end_of(idle, clock) and not wire.over()
            os.kill(pid, signal.SIGCONT)
            assert wire.reply().status == 200
            assert end_of(wire, clock)
    finally:
        os.kill(pid, signal.SIGCONT)
    Raw(served.url).post('/session/close', {'session_id': session.id})


@pytest.mark.slow
def test_a_reply_that_nobody_takes(served: Any, clock: FakeTime) -> None:
    before = slow(served.url)
    with Wire(served.url) as wire:
        for _ in range(REPLIES):
            wire.head('GET', '/openapi.json')

        def over() -> bool:
            clock.skip(0.6 * TIMEOUT)
            return slow(served.url) > before

        until(over)
        replies = 0
        with pytest.raises(ConnectionError):
            while wire.reply().status == 200:
                replies += 1
        assert replies < REPLIES


@pytest.mark.slow
def test_a_reply_that_is_taken_slowly(served: Any, clock: FakeTime) -> None:
    """As long as something is taken, the rest is kept."""
    envs, steps = 100, 1000
    session = Raw(served.url).session(envs)
    with Wire(served.url) as wire:
        wire.step(session, 'Connection: close', step_size=steps)
        begin, parts = clock.monotonic(), [b'']
        while not parts[1:] or parts[-1]:
            parts.append(wire.sock.recv(1 << 20, socket.MSG_WAITALL))
            assert Raw(served.url).get('/version').status == 200  # so the server had time to send more
            clock.skip(0.2 * TIMEOUT)
        assert clock.monotonic() > begin + TIMEOUT
    reply = json.loads(b''.join(parts).partition(b'\r\n\r\n')[2])
    assert reply['lengths'] == [steps] * envs == [len(reply['observations']) // envs] * envs
    assert Raw(served.url).post('/session/close', {'session_id': session.id}).status == 200


@pytest.mark.parametrize(
    ('begin', 'more'),
    [
        (b'GET /', b'x' * 4096),
        (b'GET /health HTTP/1.1\r\nHost: localhost\r\nX: ', b'x' * 4096),
        (b'GET /health HTTP/1.1\r\nHost: localhost\r\n', b'X: %s\r\n' % (b'x' * 4000)),
        (f'POST {STEP} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'.encode(), b'1;x' * 1000),
        (f'POST {STEP} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n'.encode(), b'X: x\r\n'),
    ],
    ids=['path', 'field', 'fields', 'extension of a chunk', 'trailers'],
)
def test_what_has_no_end(serve: Callable[..., Any], config: Config, begin: bytes, more: bytes) -> None:
    with Wire(serve(config).url) as wire:
        assert wire.send(begin).floods(more, ENDLESS) < ENDLESS


@pytest.mark.parametrize(('field', 'status'), [(60 << 10, 200), (100_000, 400), (64 << 10, 400)])
def test_a_header_that_comes_as_a_whole(
    serve: Callable[..., Any], config: Config, caplog: pytest.LogCaptureFixture, field: int, status: int
) -> None:
    with Wire(serve(config).url) as wire:
        assert wire.head('GET', '/health', f'X: {"x" * field}').reply().status == status
    assert 'Invalid' not in caplog.text


def test_a_path_that_comes_as_a_whole(serve: Callable[..., Any], config: Config) -> None:
    with Wire(serve(config).url) as wire:
        assert wire.head('GET', f'/health?{"x" * 100_000}').reply().status == 400


def test_too_many_connections_of_an_address(serve: Callable[..., Any], config: Config) -> None:
    url = serve(config, address_connections=5).url
    with ExitStack() as stack:
        silent = [stack.enter_context(Wire(url, '127.0.0.2')) for _ in range(8)]
        ended = answered(silent, 3)
        assert len(ended) == 3 and all(wire.ended() for wire in ended)
        assert 'internutopia_rejected_total{reason="connections"} 3.0' in Raw(url).http.get('/metrics').text
        for wire in set(silent) - set(ended):  # those that came first
            assert wire.head('GET', '/health', 'Connection: close').reply().status == 200
        until(lambda: answers(url, '127.0.0.2'))  # there is room again


def test_probes_are_answered_whoever_has_too_many_connections(serve: Callable[..., Any], config: Config) -> None:
    url = serve(config, address_connections=3).url
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(Wire(url, '127.0.0.2'))
        for _ in range(5):
            for path in ('/livez', '/readyz', '/health', '/livez?verbose'):
                assert stack.enter_context(Wire(url, '127.0.0.2')).head('GET', path).reply().status == 200
            other = stack.enter_context(Wire(url, '127.0.0.2'))
            with pytest.raises(ConnectionError):
                other.head('GET', f'{PREFIX}/version').reply()


def test_probes_are_answered_where_all_connections_are_at_work(serve: Callable[..., Any], config: Config) -> None:
    url = serve(config, connections=2).url
    with ExitStack() as stack:
        at_work = [stack.enter_context(Wire(url)) for _ in range(2)]
        for wire in at_work:
            wire.head('POST', STEP, f'Content-Type: {MSGPACK}', 'Content-Length: 9', 'Expect: 100-continue')
            assert wire.sock.recv(1 << 16).startswith(b'HTTP/1.1 100')
        for _ in range(4):
            assert stack.enter_context(Wire(url)).head('GET', '/livez').reply().status == 200
            with pytest.raises(ConnectionError):
                stack.enter_context(Wire(url)).head('GET', f'{PREFIX}/version').reply()
        assert at_work[0].send(bytes(9)).reply().status == 400  # it was kept, and is no message


def answers(url: str, address: str) -> bool:
    with Wire(url, address) as wire:
        try:
            return wire.head('GET', '/health').reply().status == 200
        except ConnectionError:
            return False


def test_too_many_connections(serve: Callable[..., Any], config: Config, worker_pid: Callable[[str], int]) -> None:
    """Those that have waited longest for their client end; a call at work does not."""
    url = serve(config, connections=6).url
    raw = Raw(url)
    session = raw.session(1)
    os.kill(worker_pid(session.id), signal.SIGSTOP)
    try:
        with ExitStack() as stack:
            at_work = stack.enter_context(Wire(url)).step(session)
            until(lambda: raw.get('/status').body['sessions'][0]['state'] == 'busy')
            silent = [stack.enter_context(Wire(url, f'127.0.0.{2 + number}')) for number in range(9)]
            assert all(wire.ended() for wire in silent[:4])
            for _ in range(3):
                assert answers(url, '127.0.0.1')
            os.kill(worker_pid(session.id), signal.SIGCONT)
            assert at_work.reply().status == 200
    finally:
        os.kill(worker_pid(session.id), signal.SIGCONT)


def test_requests_without_a_token(serve: Callable[..., Any], config: Config, tokens: tuple[Path, str]) -> None:
    url = serve(config, tokens=tokens[0], address_requests_per_second=0.01, address_burst=3).url

    def ask(path: str, *lines: str, address: str = '127.0.0.2', token: str | None = None) -> int:
        with Wire(url, address, token) as wire:
            return wire.head('GET', path, *lines).reply().status

    assert [ask(f'{PREFIX}/status') for _ in range(4)] == [401] * 3 + [429]
    assert ask(f'{PREFIX}/status', token='wrong') == ask(f'{PREFIX}/version') == ask('/') == 429
    assert ask('/health') == ask('/livez') == ask('/readyz') == 200
    assert ask(f'{PREFIX}/status', token=tokens[1]) == 200
    assert ask(f'{PREFIX}/version', address='127.0.0.3') == 200
    assert ask(f'{PREFIX}/version', 'X-Forwarded-For: 10.0.0.1') == 429  # anybody can say so


def test_addresses_behind_a_proxy(serve: Callable[..., Any], config: Config, tokens: tuple[Path, str]) -> None:
    url = serve(
        config,
        tokens=tokens[0],
        address_requests_per_second=0.01,
        address_burst=2,
        address_connections=2,
        trusted_proxies=['127.0.0.2', '127.0.1.0/24'],
    ).url
    with ExitStack() as stack:
        proxy = [stack.enter_context(Wire(url, address)) for address in ('127.0.0.2', '127.0.1.7') * 3]

        def ask(number: int, client: str) -> int:
            return proxy[number].head('GET', f'{PREFIX}/version', f'X-Forwarded-For: {client}').reply().status

        assert [ask(number, '10.0.0.1') for number in range(4)] == [200, 200, 429, 429]
        assert [ask(number, '6.6.6.6, 10.0.0.2') for number in range(4)] == [200, 200, 429, 429]  # the last one counts
        assert [ask(4, '10.0.0.3'), ask(5, '10.0.0.4')] == [200, 200]


def test_proxies_are_addresses() -> None:
    from internutopia.remote.server.server_settings import Settings

    with pytest.raises(ValueError, match='trusted_proxies'):
        Settings.model_validate({'trusted_proxies': ['nginx']})


def test_what_addresses_count_as() -> None:
    assert origin('10.1.2.3') == origin('::ffff:10.1.2.3') == '10.1.2.3'
    assert origin('2001:db8:1:2::3') == origin('2001:db8:1:2:ffff::') != origin('2001:db8:1:3::3')
    assert origin('unknown') == 'unknown' and len(origin('x' * 60000)) == 64


@pytest.mark.parametrize('framing', ['Content-Length: 1000000000', 'Transfer-Encoding: chunked'])
@pytest.mark.parametrize(
    ('status', 'token', 'media'),
    [(401, 'wrong', MSGPACK), (415, 'right', 'text/plain'), (429, 'right', MSGPACK), (413, 'right', MSGPACK)],
)
def test_a_body_that_is_refused_is_not_waited_for(
    serve: Callable[..., Any],
    config: Config,
    tokens: tuple[Path, str],
    status: int,
    token: str,
    media: str,
    framing: str,
) -> None:
    rate = {'requests_per_second': 0.01, 'burst': 1} if status == 429 else {}
    url = serve(config, tokens=tokens[0], max_body=1 << 20, **rate).url
    token = tokens[1] if token == 'right' else token
    if rate:
        Raw(url, token).get('/status')
    lines = [f'Content-Type: {media}', framing]
    with Wire(url, token=token) as wire:
        wire.head('POST', STEP, *lines)
        if status == 413 and 'chunked' in framing:
            wire.send(b'200000\r\n').floods(bytes(1 << 16), 1 << 21)
        reply = wire.reply()
        assert reply.status == status and reply.headers['connection'] == 'close'
        assert wire.ended()
    with Wire(url, token=token) as wire:  # and who asks first whether to send it is not told to
        wire.head('POST', STEP, *lines, 'Expect: 100-continue')
        if status == 413 and 'chunked' in framing:
            assert wire.sock.recv(1 << 16).startswith(b'HTTP/1.1 100')  # so far nothing was wrong with it
        else:
            assert wire.sock.recv(1 << 16).startswith(b'HTTP/1.1 %d' % status)


@pytest.mark.parametrize('length', ['', '-1', '+1', '0x1', '1, 2', '9' * 30, '1\r\nContent-Length: 2', '٣'])
def test_a_length_that_is_none(serve: Callable[..., Any], config: Config, length: str) -> None:
    with Wire(serve(config).url) as wire:
        reply = wire.head('POST', STEP, f'Content-Type: {MSGPACK}', f'Content-Length: {length}').reply()
        assert reply.status == 400 and wire.ended()


def test_a_large_body_is_refused_in_words(serve: Callable[..., Any], config: Config, tokens: tuple[Path, str]) -> None:
    """Also to clients that send all of it before they read."""
    ada = Raw(serve(config, tokens=tokens[0], max_body=1 << 20).url, tokens[1])
    for _ in range(10):
        assert ada.post('/session/create', bytes(20 << 20)).fault == (413, 'too_large')
    assert ada.session(1).close().status == 200


def test_a_client_that_goes_in_the_middle_of_a_body(
    serve: Callable[..., Any], config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    url = serve(config).url
    for rest in (b'', b'no chunk\r\n'):  # the latter is no HTTP
        with Wire(url) as wire:
            wire.head('POST', STEP, f'Content-Type: {MSGPACK}', 'Transfer-Encoding: chunked').send(b'1\r\nx\r\n' + rest)
    until(lambda: caplog.text.count('status=499') == 2)
    assert 'Traceback' not in caplog.text and 'ERROR' not in caplog.text
