"""Watchdog that notices at once that a process which one talks to has ended.

A process that ends, in whatever way, closes its connections in that moment. So a connection is kept to each process
that matters, over which nothing is said. A machine that has lost its power closes nothing: it is asked now and then by
the kernel (TCP keepalive), and counts as gone after about ten seconds.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

_ANSWER = 10.0  # s that a process has to answer
_KEEPALIVE = {'TCP_KEEPIDLE': 4, 'TCP_KEEPINTVL': 2, 'TCP_KEEPCNT': 3}  # s, s, number; names of Linux


@dataclass(frozen=True)
class Peer:
    """A process that listens at a TCP address; `what` it is, for messages."""

    what: str
    host: str
    port: int

    @classmethod
    def at(cls, what: str, address: str) -> Peer:
        """The process at `host:port`. ValueError if the address is none."""
        host, _, port = address.rpartition(':')
        return cls(what, host, int(port))

    def connect(self) -> socket.socket:
        """Connect to it. OSError if it does not answer."""
        connection = socket.create_connection((self.host, self.port), timeout=_ANSWER)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return connection

    def answers(self) -> bool:
        """Whether it is there."""
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def __str__(self) -> str:
        return f'{self.what} at {self.host}:{self.port}'


class Watchdog:
    """Waits until one of some processes has ended."""

    def __init__(self) -> None:
        self._stopped, self._stop = socket.socketpair()

    def wait(self, peers: Sequence[Peer]) -> Peer | None:
        """Wait until one of these processes has ended, which is returned; None after `stop`. To be called once."""
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
                for key, _ in selector.select():
                    if key.data is None:
                        return None
                    peer, connection = key.data
                    if not _is_open(connection):  # it has ended, or grew tired of listening to nobody
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
