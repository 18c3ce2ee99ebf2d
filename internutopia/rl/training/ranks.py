"""Ranks: processes that learn one policy together, each from envs of its own (data-parallel training).

    result = run_ranks(['cpu', 'cpu'], learn, (settings,), report=print, stopped=lambda: False)

calls `learn(rank, settings, report=..., stopped=...)` in two processes, rank 0 and 1 of a group of `torch.distributed`.
They start and end together: if one raises or dies, or this process ends, however it does, all are gone at once. Signals
are for this process alone, which forwards the request to stop. The group meets on the loopback interface, on a port
that the system chooses.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch
from torch import distributed
from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

from internutopia.util.child_process import end_with_parent
from internutopia.util.errors import located

_LOOPBACK = '127.0.0.1'
_POLL_INTERVAL = 0.1  # s, between two questions whether to stop
_CLOSING_TIMEOUT = 30.0  # s that a rank has to end when all is done


@dataclass(frozen=True)
class _Rank:
    """A rank, as the main process handles it."""

    name: str
    process: BaseProcess
    connection: Connection


def run_ranks(
    devices: Sequence[str],
    function: Callable[..., Any],
    arguments: Sequence[Any] = (),
    *,
    report: Callable[[Any], None],
    stopped: Callable[[], bool],
) -> Any:
    """Run a function in a process for each device; returns its result in that of rank 0.

    Args:
        devices: of the ranks: `'cpu'` for all (their group is one of gloo), or a GPU each (NCCL).
        function: called as `function(rank, *arguments, report=..., stopped=...)`, one that can be pickled, as can be
            what it takes and gives. The main module is imported again in each process, so a script must start its run
            under `if __name__ == '__main__'`.
        arguments: of the function.
        report: called here with what a rank calls its `report` with.
        stopped: called here several times a second; once it returns True, the `stopped` of rank 0 does.

    Raises:
        ChildProcessError: a rank died.
        Exception: what a rank has raised, with a note that names the rank.
    """
    with socket.create_server((_LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        # given the socket, it does not listen to other machines
        store = TCPStore(_LOOPBACK, port, is_master=True, wait_for_workers=False, master_listen_fd=server.detach())
    ranks: list[_Rank] = []
    try:
        with _signals_blocked():
            for rank in range(len(devices)):
                ranks.append(_start(rank, devices, port, function, arguments))
        return _wait(ranks, report, stopped)
    except BaseException:
        for rank in ranks:
            rank.process.kill()
        raise
    finally:
        for rank in ranks:
            rank.connection.close()
        for rank in ranks:
            rank.process.join(_CLOSING_TIMEOUT)
            rank.process.kill()
            rank.process.join()
        del store  # it has to be there as long as they are


def _start(rank: int, devices: Sequence[str], port: int, *work: Any) -> _Rank:
    context = multiprocessing.get_context('spawn')  # neither threads nor CUDA survive a fork
    ours, theirs = context.Pipe()
    name = f'rank {rank} of {len(devices)}'
    with theirs:
        process = context.Process(target=_run, args=(rank, name, devices, port, theirs, *work), name=name)
        process.start()
    return _Rank(name, process, ours)


def _wait(ranks: Sequence[_Rank], report: Callable[[Any], None], stopped: Callable[[], bool]) -> Any:
    """Wait until all ranks are done; returns the result of the first."""
    running, results, notified = {rank.connection: rank for rank in ranks}, {}, False
    while running:
        if not notified and stopped():
            notified = True
            with suppress(OSError):  # it may just have died, which shows below
                ranks[0].connection.send('stop')
        errors = []
        for connection in wait(list(running), _POLL_INTERVAL):
            assert isinstance(connection, Connection)
            rank = running[connection]
            try:
                kind, value = connection.recv()
            except (EOFError, OSError):  # errors of others are of the connection to this one
                rank.process.join()
                raise ChildProcessError(f'{rank.name} (process {rank.process.pid}) {_end_of(rank.process)}') from None
            if kind == 'report':
                report(value)
            elif kind == 'error':
                errors.append(value)
            else:
                results[rank.name] = value
                del running[connection]
        if errors:
            raise errors[0]
    return results[ranks[0].name]


def _end_of(process: BaseProcess) -> str:
    """Return a description of the end of a process."""
    code = process.exitcode or 0
    if code >= 0:
        return f'ended with exit code {code}'
    killed = f'was killed by {signal.Signals(-code).name}'
    return f'{killed} (was there too little memory?)' if -code == signal.SIGKILL else killed


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Return a context in which processes are started with the signals blocked that request a program to stop."""
    if not hasattr(signal, 'pthread_sigmask'):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which in some versions of Python unblocks signals when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(
    rank: int,
    name: str,
    devices: Sequence[str],
    port: int,
    connection: Connection,
    function: Callable[..., Any],
    arguments: Sequence[Any],
) -> None:
    """Run a rank: the body of its process."""
    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None
    end_with_parent(parent.pid)
    try:
        _join_group(rank, devices, port)
        value = function(
            rank, *arguments, report=lambda value: connection.send(('report', value)), stopped=connection.poll
        )
        connection.send(('result', value))
    except Exception as error:
        connection.send(('error', located(error, name, (ValueError, KeyError, OSError))))
    with suppress(EOFError):  # a process that leaves before all are done breaks the connections of the others
        while True:
            connection.recv()
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _join_group(rank: int, devices: Sequence[str], port: int) -> None:
    if devices[rank] == 'cpu':
        backend = 'gloo'
        os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo0' if sys.platform == 'darwin' else 'lo')
    else:
        backend = 'nccl'
        torch.cuda.set_device(devices[rank])
    store = TCPStore(_LOOPBACK, port, is_master=False)
    distributed.init_process_group(backend, store=store, rank=rank, world_size=len(devices))
