"""Answers to the client, good, bad and none: a stub on loopback says whatever a test needs."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from waiting import PATIENCE, FakeTime

from internutopia.remote import (
    AuthError,
    InvalidRequestError,
    LimitError,
    RemoteError,
    ServerUnavailableError,
    SessionLostError,
    VersionMismatchError,
    client,
    create_vectorized_env,
)
from internutopia.remote.client import Client
from internutopia.remote.protocol import Closed, CloseSession, Version

SESSION = CloseSession(session_id='0b6f3c0e-8d6c-4a0a-9c83-6f5b8c1f0a11')


@dataclass
class Answer:
    """One reply of the stub."""

    status: int = 200
    body: Any = field(default_factory=lambda: {'closed': True})
    headers: dict[str, str] = field(default_factory=dict)


def fault(status: int, code: str, **headers: str) -> Answer:
    body = {'error': {'code': code, 'message': f'this is {code}', 'request_id': 'r7'}}
    return Answer(status, body, {name.replace('_', '-'): value for name, value in headers.items()})


class Stub(ThreadingHTTPServer):
    """Gives the answers one after the other, the last one again and again, and keeps the keys of the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.answers: list[Answer] = []
        self.keys: list[str | None] = []
        self.heads: list[dict[str, str]] = []
        self.url = f'http://127.0.0.1:{self.server_address[1]}'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        stub = self.server
        assert isinstance(stub, Stub)
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        stub.keys.append(self.headers['Idempotency-Key'])
        stub.heads.append(dict(self.headers))
        answer = stub.answers.pop(0) if len(stub.answers) > 1 else stub.answers[0]
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {'Content-Type': 'application/json', **answer.headers}.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """The client's clock, in which its pauses take no time."""
    fake = FakeTime()
    monkeypatch.setattr(client, 'time', fake)
    return fake


def close(url: str, timeout: float = PATIENCE) -> bool:
    with Client(url, 'secret', timeout) as caller:
        return caller.post('session/close', SESSION, Closed).closed


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('status', 'code', 'kind'),
    [
        (400, 'malformed', InvalidRequestError),
        (401, 'unauthorized', AuthError),
        (404, 'unknown_session', SessionLostError),
        (404, 'unknown_episode', InvalidRequestError),
        (409, 'conflict', InvalidRequestError),
        (413, 'too_large', LimitError),
        (422, 'invalid', InvalidRequestError),
        (429, 'too_many_sessions', LimitError),
        (429, 'too_many_envs', LimitError),
        (500, 'internal', RemoteError),
        (503, 'session_failed', SessionLostError),
    ],
)
def test_what_waiting_does_not_mend_is_raised_at_once(stub: Stub, status: int, code: str, kind: type) -> None:
    stub.answers = [fault(status, code, Retry_After='1')]
    with pytest.raises(kind, match=f'POST session/close: this is {code}') as raised:
        close(stub.url)
    error = raised.value
    assert (error.code, error.status, error.request_id, error.retry_after) == (code, status, 'r7', None)
    assert type(error) is kind and isinstance(error, RemoteError) and len(stub.keys) == 1


@pytest.mark.parametrize(
    ('status', 'code'), [(429, 'busy'), (429, 'rate_limited'), (503, 'overloaded'), (503, 'shutting_down')]
)
def test_what_passes_is_tried_again_with_the_same_key(stub: Stub, fake_time: FakeTime, status: int, code: str) -> None:
    stub.answers = [fault(status, code, Retry_After='0.2'), fault(status, code), Answer()]
    assert close(stub.url)
    assert fake_time.pauses[0] == 0.2 and sum(fake_time.pauses) < 1.0
    assert len(stub.keys) == 3 and len(set(stub.keys)) == 1 and stub.keys[0]
    assert close(stub.url)
    assert stub.keys[3] != stub.keys[0]


@pytest.mark.parametrize(('code', 'kind'), [('rate_limited', LimitError), ('overloaded', ServerUnavailableError)])
def test_what_does_not_pass_in_time_is_raised(stub: Stub, fake_time: FakeTime, code: str, kind: type) -> None:
    stub.answers = [fault(429, code, Retry_After='600')]
    with pytest.raises(kind, match=f'this is {code}') as raised:
        close(stub.url)
    assert not fake_time.pauses and raised.value.retry_after == 600.0


def test_a_proxy_without_its_server_is_tried_again(stub: Stub) -> None:
    stub.answers = [Answer(502, b'<html>Bad Gateway</html>', {'Content-Type': 'text/html'}), Answer()]
    assert close(stub.url)
    stub.answers = [Answer(404, b'<html>Nothing here</html>', {'Content-Type': 'text/html'})]
    with pytest.raises(InvalidRequestError, match='HTTP 404 Not Found, not from a server of InternUtopia'):
        close(stub.url)


@pytest.mark.parametrize('body', [b'{"clo', b'[]', b'{"closed": "perhaps"}', b'\xff'])
def test_replies_that_make_no_sense(stub: Stub, body: bytes) -> None:
    stub.answers = [Answer(body=body)]
    with pytest.raises(RemoteError, match='POST session/close: the reply'):
        close(stub.url)


def test_the_token_is_sent_and_not_shown(stub: Stub) -> None:
    stub.answers = [fault(401, 'unauthorized')]
    with pytest.raises(AuthError) as raised:
        close(stub.url)
    assert stub.heads[0]['Authorization'] == 'Bearer secret' and 'secret' not in str(raised.value)


# --- versions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('answer', 'message'),
    [
        (
            Answer(body={'version': '9.0.0', 'api': 2, 'minimum_client': '1.0.0'}),
            'version 2 of the protocol.*, version 9.0.0$',
        ),
        (
            Answer(body={'version': '9.0.0', 'api': 1, 'minimum_client': '9.0.0'}),
            'needs 9.0.0 or newer.*, version 9.0.0 or newer$',
        ),
        (Answer(404, b'nothing', {'Content-Type': 'text/plain'}), 'is no server of InternUtopia that speaks version 1'),
    ],
)
def test_versions_that_do_not_fit(stub: Stub, answer: Answer, message: str) -> None:
    stub.answers = [answer]
    with pytest.raises(VersionMismatchError, match=message):
        create_vectorized_env(1, base_url=stub.url)


# --- time ------------------------------------------------------------------------------------------------------------


def test_no_server(fake_time: FakeTime) -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        url = f'http://127.0.0.1:{taken.getsockname()[1]}'
    with pytest.raises(ServerUnavailableError, match=f'no answer from {url}.*refused') as raised:
        close(url, timeout=60.0)
    assert len(fake_time.pauses) > 3 and sum(fake_time.pauses) < 60.0
    assert raised.value.code == 'unreachable' and raised.value.status is None


@pytest.mark.parametrize('drops', [b'', b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n'])
def test_a_reply_that_does_not_come_to_its_end(drops: bytes) -> None:
    """Silence, or a byte now and then."""
    over = threading.Event()
    with socket.create_server(('127.0.0.1', 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):  # the client gives up
                connection.sendall(drops)
                while not over.wait(0.05):
                    if drops:
                        connection.send(b'.')

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(ServerUnavailableError, match='ReadTimeout') as raised:
            close(f'http://127.0.0.1:{listener.getsockname()[1]}', timeout=0.5)
        over.set()
    assert raised.value.__notes__ == ['gave up after 1 attempts in 0.5 s']


def test_pauses_grow_and_are_not_alike(stub: Stub, fake_time: FakeTime) -> None:
    stub.answers = [*[fault(503, 'overloaded')] * 12, Answer()]
    assert close(stub.url)
    pauses = fake_time.pauses
    assert all(0.5 * 0.05 * 2**i <= pause <= 0.05 * 2**i for i, pause in enumerate(pauses[:5]))
    assert max(pauses) <= 2.0 and len(set(pauses)) == 12


# --- log, arguments, imports -----------------------------------------------------------------------------------------


def test_each_attempt_leaves_a_line(stub: Stub, caplog: pytest.LogCaptureFixture) -> None:
    stub.answers = [fault(429, 'busy'), Answer(headers={'X-Request-Id': 'r8'})]
    with caplog.at_level(logging.INFO, 'internutopia.remote'):
        close(stub.url)
    lines = [vars(record) for record in caplog.records if record.name == 'internutopia.remote.client']
    assert [(line['status'], line['attempt'], line['request_id']) for line in lines] == [(429, 1, None), (200, 2, 'r8')]
    assert all(line['method'] == 'POST' and line['path'] == 'session/close' and line['ms'] > 0.0 for line in lines)
    assert 'POST session/close: 200 in ' in caplog.text and 'secret' not in caplog.text


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'base_url': 'ftp://127.0.0.1'}, "'ftp://127.0.0.1': expected something like 'http://"),
        ({'base_url': '127.0.0.1:8001'}, 'base_url='),
        ({'base_url': 'http://'}, 'base_url='),
        *[({'user_token': token}, 'user_token must be printable ASCII') for token in ('', 'two words', 'é', 'line\n')],
        ({'timeout': 0.0}, 'timeout must be a positive number of seconds, got 0.0'),
        ({'step_size': 0}, 'step_size must be 1 or more, got 0'),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_vectorized_env(1, **arguments)


def test_a_version_is_all_a_client_asks_for(stub: Stub) -> None:
    stub.answers = [Answer(body={'version': '9.0.0', 'api': 1, 'minimum_client': '3.0.0a1', 'news': 'to come'})]
    with Client(stub.url) as caller:
        assert caller.get('version', Version).version == '9.0.0'
    assert stub.keys == [None] and 'Authorization' not in stub.heads[0]


@pytest.mark.slow
def test_the_package_loads_nothing_heavy() -> None:
    program = (
        'import sys, internutopia.remote\n'
        "loaded = {'httpx', 'msgpack', 'fastapi', 'gymnasium', 'mujoco'} & set(sys.modules)\n"
        'assert not loaded, loaded\n'
        'import internutopia.remote.vector_env\n'
        "loaded = {'fastapi', 'uvicorn', 'mujoco', 'torch'} & set(sys.modules)\n"
        'assert not loaded, loaded'
    )
    subprocess.run([sys.executable, '-c', program], check=True)


def test_without_its_library_the_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('client', 'session', 'vectorized_env'):
        monkeypatch.delitem(sys.modules, f'internutopia.remote.{name}', raising=False)
    monkeypatch.setitem(sys.modules, 'httpx', None)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[remote\]'"):
        __import__('internutopia.remote', fromlist=['create_vectorized_env']).create_vectorized_env  # noqa: B018
