"""A process that has ended is noticed, and one that only closes a connection is not taken for it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from internutopia.cluster import liveness
from internutopia.cluster.liveness import Inquiry, Peer, Watchdog

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


def test_who_is_asked_says_who_is_lost(monkeypatch: pytest.MonkeyPatch):
    """At last: an answer that fails is none."""
    monkeypatch.setattr(liveness, '_QUERY_INTERVAL', 0.01)
    with socket.create_server(('127.0.0.1', 0)) as server:
        peer = Peer('it', *server.getsockname())
        answers = iter([None, OSError('busy'), None, replace(peer, fate='was given up')])

        def ask() -> Peer | None:
            answer = next(answers)
            if isinstance(answer, OSError):
                raise answer
            return answer

        assert Watchdog().wait([peer], Inquiry(peer, ask)) == replace(peer, fate='was given up')
        assert not [*answers]


def test_who_does_not_answer_is_lost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(liveness, '_QUERY_INTERVAL', 0.01)
    monkeypatch.setattr(liveness, '_SILENCE', 0.1)
    never = threading.Event()
    with socket.create_server(('127.0.0.1', 0)) as server:
        peer = Peer('it', *server.getsockname())
        lost = Watchdog().wait([peer], Inquiry(peer, lambda: None if never.wait() else peer))
    never.set()
    assert lost == replace(peer, fate='has not answered for 0 s')
