"""Requests to the viewer's port of programs that are no page of it: scanners, browsers that try TLS, mistakes."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

pytest.importorskip('viser', reason='the viewer needs the extra `viewer`')

from page_client import PATIENCE

from internutopia.viewer.viewer import start_server, stop_server

TOKEN = 'secret'
REST = b' HTTP/1.1\r\nHost: localhost\r\n\r\n'
SOCKET = (
    b' HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
    b'Sec-WebSocket-Version: %d\r\nSec-WebSocket-Key: %s\r\n\r\n'
)
CLIENT_HELLO = bytes.fromhex('16030100c8010000c40303')
REQUESTS = {
    'a path that is no text': (b'GET /\xff/' + REST, b'403'),
    'no token': (b'GET /' + REST, b'403'),
    'a socket without a token': (b'GET /' + SOCKET % (13, b'dGhlIHNhbXBsZSBub25jZQ=='), b'403'),
    'another method': (b'POST /secret/' + REST, b''),
    'a body': (b'POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc', b''),
    'an old version': (b'GET / HTTP/1.0\r\n\r\n', b''),
    'no HTTP': (b'\x00\x01\xfe hello\r\n\r\n', b''),
    'TLS': (CLIENT_HELLO + bytes(range(200)), b''),
    'a long header': (b'GET /secret/ HTTP/1.1\r\nX: ' + b'x' * 100_000 + b'\r\n\r\n', b''),
    # viser's own part of the server, which hides errors once it was asked for a page
    'a socket with a wrong key': (b'GET /secret/' + SOCKET % (13, b'short'), b'400'),
    'a socket of an old version': (b'GET /secret/' + SOCKET % (12, b'dGhlIHNhbXBsZSBub25jZQ=='), b'400'),
    'a path that is no text, with the token': (b'GET /secret/\xff' + REST, b'404'),
    'a long path': (b'GET /secret/' + b'x' * 5000 + REST, b'500'),
}


@pytest.fixture(scope='module')
def port() -> Iterator[int]:
    """The port of a viewer's server that nobody has opened a page of."""
    server = start_server('127.0.0.1', 0, TOKEN, {})
    yield server.get_port()
    stop_server(server)


def sent(port: int, data: bytes) -> bytes:
    """The first bytes of the reply to some bytes, which are all that is sent."""
    with socket.create_connection(('127.0.0.1', port), PATIENCE) as stranger:
        stranger.sendall(data)
        try:
            return stranger.recv(1 << 12)
        except ConnectionResetError:
            return b''


@pytest.mark.parametrize(('data', 'status'), REQUESTS.values(), ids=REQUESTS.keys())
def test_strangers_write_nothing_to_the_terminal(
    port: int, caplog: pytest.LogCaptureFixture, data: bytes, status: bytes
) -> None:
    with caplog.at_level(logging.WARNING):
        assert sent(port, data).partition(b' ')[2][: len(status)] == status
        assert sent(port, b'GET /' + REST).startswith(b'HTTP/1.1 403')  # after whatever is written
    assert not caplog.records


@pytest.mark.parametrize('data', [b'', b'GET /sec'])
def test_who_goes_writes_nothing_to_the_terminal(port: int, caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    with caplog.at_level(logging.WARNING):
        with socket.create_connection(('127.0.0.1', port)) as stranger:
            stranger.sendall(data)
        assert sent(port, b'GET /' + REST).startswith(b'HTTP/1.1 403')
    assert not caplog.records
