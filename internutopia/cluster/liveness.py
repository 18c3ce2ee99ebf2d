"""Watchdog that detects at once that a peer process has ended.

When a process ends, for any reason, its connections are closed. So the watchdog keeps an idle connection to each
process that matters. A machine that loses power closes nothing: the kernel probes it (TCP keepalive), and it counts as
dead after about ten seconds. A process that is alive but does nothing (stopped, or hanging) has to be queried: see
`Inquiry`.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

_ANSWER_TIMEOUT = 10.0  # s
_QUERY_INTERVAL = 5.0  # s
_SILENCE = 60.0  # s without an answer after which it is not waited for: busy machines are slow
_KEEPALIVE = {'TCP_KEEPIDLE': 4, 'TCP_KEEPINTVL': 2, 'TCP_KEEPCNT': 3}  # s, s, number; names of Linux


_T = TypeVar('_T')


@dataclass(frozen=True)
class Peer:
    """A process that listens at a TCP address; `what` it is and its `fate` once it is lost, for messages."""

    what: str
    host: str
    port: int
    fate: str = 'has ended'

    @classmethod
    def at(cls, what: str, address: str) -> Peer:
        """Return the process at `host:port`. ValueError if the address is none."""
        host, _, port = address.rpartition(':')
        return cls(what, host, int(port))

    def connect(self) -> socket.socket:
        """Connect to it. OSError if it does not answer."""
        connection = socket.create_connection((self.host, self.port), timeout=_ANSWER_TIMEOUT)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return connection

    def answers(self) -> bool:
        """Return whether the process is there."""
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def __str__(self) -> str:
        return f'{self.what} at {self.host}:{self.port}'


def in_thread(function: Callable[[], _T]) -> Future[_T]:
    """Begin a call that may never come back, in a thread that the end of the program does not wait for."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


class Inquiry:
    """Repeated query to a process for others that are lost.

    Args:
        peer: process that is queried.
        query: returns the lost process, if any.
    """

    def __init__(self, peer: Peer, query: Callable[[], Peer | None]):
        self._peer, self._query = peer, query
        self._answer: Future[Peer | None] | None = None
        self._checks = 0  # without an answer, counted as time in which this process was not stopped itself

    def check(self) -> Peer | None:
        """Return the lost process, if any; to be called at intervals of `_QUERY_INTERVAL`."""
        if self._answer is not None and not self._answer.done():
            self._checks += 1
            if self._checks * _QUERY_INTERVAL < _SILENCE:
                return None
            return replace(self._peer, fate=f'has not answered for {_SILENCE:.0f} s')
        lost = None if self._answer is None or self._answer.exception() else self._answer.result()
        self._answer, self._checks = in_thread(self._query), 0
        return lost


class Watchdog:
    """Watchdog over some processes, which waits until one of them has ended."""

    def __init__(self) -> None:
        self._stopped, self._stop = socket.socketpair()

    def wait(self, peers: Sequence[Peer], inquiry: Inquiry | None = None) -> Peer | None:
        """Wait until one of these processes has ended, or an inquiry finds that one is lost.

        Returns it; None after `stop`. To be called once.
        """
        with self._stopped, selectors.DefaultSelector() as selector, ExitStack() as connections:
            selector.register(self._stopped, selectors.EVENT_READ)
            unconnected = list(peers)
            while True:
                for peer in unconnected:
                    try:
                        connection = connections.enter_context(peer.connect())
                    except OSError:
                        return peer
                    selector.register(connection, selectors.EVENT_READ, (peer, connection))
                unconnected = []
                events = selector.select(None if inquiry is None else _QUERY_INTERVAL)
                if inquiry is not None and not events and (lost := inquiry.check()) is not None:
                    return lost
                for key, _ in events:
                    if key.data is None:
                        return None
                    peer, connection = key.data
                    if not _is_open(connection):  # it has ended, or closed the idle connection
                        selector.unregister(connection)
                        unconnected.append(peer)

    def stop(self) -> None:
        """End `wait`, also one that has not begun."""
        with suppress(OSError):  # stopped before
            self._stop.shutdown(socket.SHUT_RDWR)  # closing it would not be enough if a forked child has it, too
        self._stop.close()


def _is_open(connection: socket.socket) -> bool:
    """Read what there is to read; False if the connection has ended."""
    try:
        return bool(connection.recv(1 << 16))
    except OSError:
        return False


_GIVEN_UP = 'was given up by its cluster (it has missed too many heartbeats: is the machine too busy?)'


def peers_of(address: str) -> list[Peer]:
    """Return the GCS and this machine's raylet, of the connection of this process, which was made to an address.

    From outside of the cluster nothing but its proxy may be in reach, which is the only one then.
    """
    import ray
    from ray.util.client import ray as client

    if client.is_connected():
        return [Peer.at('its Ray client server', address.partition('://')[2])] if address else []
    context = ray.get_runtime_context()
    (node,) = (node for node in ray.nodes() if node['NodeID'] == context.get_node_id())
    return [
        Peer.at('its head process (gcs_server)', context.gcs_address),
        Peer('the raylet of this machine', node['NodeManagerAddress'], node['NodeManagerPort']),
    ]


def inquiry_of(peers: Sequence[Peer], call: Callable[[], AbstractContextManager[None]]) -> Inquiry | None:
    """Return an inquiry to the GCS about the raylet, in the context of calls; None from outside of the cluster."""
    import ray

    if len(peers) < 2:
        return None
    gcs, raylet = peers
    here = ray.get_runtime_context().get_node_id()

    def query() -> Peer | None:
        with call():
            is_alive = any(node['Alive'] for node in ray.nodes() if node['NodeID'] == here)
        return None if is_alive else replace(raylet, fate=_GIVEN_UP)

    return Inquiry(gcs, query)
