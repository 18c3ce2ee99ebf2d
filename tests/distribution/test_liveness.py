"""A process that has ended is noticed, and one that only closes a connection is not taken for it."""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from internutopia.distribution.liveness import Peer, Watchdog

SERVER = """
import socket

server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1], flush=True)
server.accept()[0].close()
connection, _ = server.accept()
connection.send(b'something')
print('open', flush=True)
server.accept()
"""
PATIENCE = 300.0  # s


def test_a_process_is_watched_until_it_ends():
    with (
        subprocess.Popen([sys.executable, '-c', SERVER], stdout=subprocess.PIPE, text=True) as process,
        socket.create_server(('127.0.0.1', 0)) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        assert process.stdout is not None
        peer = Peer.at('it', f'127.0.0.1:{process.stdout.readline().strip()}')
        lost: Future[Peer | None] = threads.submit(Watchdog().wait, [Peer('other', *other.getsockname()), peer])
        assert process.stdout.readline() == 'open\n'  # after it has closed the first connection
        assert not lost.done()
        process.kill()
        assert lost.result(PATIENCE) == peer
        assert str(peer) == f'it at 127.0.0.1:{peer.port}' and not peer.answers()


@pytest.mark.parametrize('before', [True, False])
def test_a_watch_can_be_stopped(before: bool):
    watch = Watchdog()
    with socket.create_server(('127.0.0.1', 0)) as server, ThreadPoolExecutor(1) as threads:
        if before:
            watch.stop()
        lost = threads.submit(watch.wait, [Peer('it', *server.getsockname())])
        if not before:
            server.accept()
            watch.stop()
        assert lost.result(PATIENCE) is None
        watch.stop()


def test_who_is_not_there_is_lost_at_once():
    with socket.create_server(('127.0.0.1', 0)) as server:
        peer = Peer('it', *server.getsockname())
    assert Watchdog().wait([peer]) == peer
