"""Cost of waking another process of this machine and being woken by it, in several ways.

    python benchmarks/signals.py

Prints microseconds of a round trip, the least of a few runs. Processes that share one core pay for a switch each way.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Callable

ROUNDS, TURNS = 5, 4000
End = tuple[Callable[[], object], Callable[[], object]]
"""Wait, wake."""


def pipe() -> tuple[End, End]:
    """Two pipes."""
    (a, b), (c, d) = os.pipe(), os.pipe()
    return (lambda: os.read(a, 8), lambda: os.write(d, b'1')), (lambda: os.read(c, 8), lambda: os.write(b, b'1'))


def sockets() -> tuple[End, End]:
    """A pair of Unix sockets."""
    a, b = socket.socketpair()
    return (lambda: a.recv(8), lambda: a.send(b'1')), (lambda: b.recv(8), lambda: b.send(b'1'))


def eventfd() -> tuple[End, End]:
    """Two eventfd."""
    a, b = os.eventfd(0), os.eventfd(0)
    return (lambda: os.eventfd_read(a), lambda: os.eventfd_write(b, 1)), (
        lambda: os.eventfd_read(b),
        lambda: os.eventfd_write(a, 1),
    )


def semaphore() -> tuple[End, End]:
    """Two semaphores."""
    a, b = multiprocessing.Semaphore(0), multiprocessing.Semaphore(0)
    return (a.acquire, b.release), (b.acquire, a.release)


def connection() -> tuple[End, End]:
    """`multiprocessing.Pipe` with pickled messages."""
    a, b = multiprocessing.Pipe()
    return (a.recv, lambda: a.send(('step', 1))), (b.recv, lambda: b.send(('step', 1)))


def round_trip(make: Callable[[], tuple[End, End]]) -> float:
    """Time of a round trip [us]."""
    (wait, wake), (other_wait, other_wake) = make()
    child = os.fork()
    if not child:
        for _ in range(TURNS):
            other_wait()
            other_wake()
        os._exit(0)
    start = time.perf_counter()
    for _ in range(TURNS):
        wake()
        wait()
    seconds = time.perf_counter() - start
    os.waitpid(child, 0)
    return 1e6 * seconds / TURNS


if __name__ == '__main__':
    for way in (pipe, eventfd, semaphore, sockets, connection):
        print(f'{way.__name__:10} {min(round_trip(way) for _ in range(ROUNDS)):6.1f} us')
