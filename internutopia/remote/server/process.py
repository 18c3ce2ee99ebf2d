"""Server side of worker processes, which are forked from a process that has everything imported."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from typing import Any

from internutopia.remote.server import worker
from internutopia.remote.server.service_error import retry_later
from internutopia.util import log

_READ_AHEAD = 1 << 22  # bytes of a message that are read while it arrives


class WorkerDiedError(Exception):
    """Raised when the worker process ended before or during a call."""


class WorkerProcess:
    """A worker process, with one call at a time."""

    def __init__(self, process: ForkServerProcess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._process = process
        self._reader = reader
        self._writer = writer
        assert process.pid is not None
        self.pid: int = process.pid

    @property
    def dead(self) -> bool:
        """True if the process has ended."""
        return self._reader.at_eof()

    def send(self, message: bytes) -> None:
        """Send a pickled message without waiting for an answer."""
        self._writer.write(worker.LENGTH.pack(len(message)) + message)

    async def receive(self) -> Any:
        """Receive the next answer. WorkerDiedError if there will be none."""
        try:
            (length,) = worker.LENGTH.unpack(await self._reader.readexactly(worker.LENGTH.size))
            return pickle.loads(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerDiedError(f'process {self.pid} ended') from None

    async def call(self, *call: Any) -> Any:
        """Run a call in the worker. WorkerDiedError if the process ends instead."""
        self.send(pickle.dumps(call, pickle.HIGHEST_PROTOCOL))
        return await self.receive()

    def kill(self) -> None:
        """Kill the process at once; idempotent."""
        self._writer.close()
        self._process.kill()


class WorkerLauncher:
    """Launcher of workers that leaves none behind."""

    def __init__(self):
        self._context = multiprocessing.get_context('forkserver')
        self._context.set_forkserver_preload([f'{__package__}.preload'])
        # processes are started and reaped by one thread: the standard library's books are not made for several
        self._thread = ThreadPoolExecutor(1, 'internutopia-workers')

    async def start(self, target: Callable[[socket.socket], None]) -> WorkerProcess:
        """Start a process that runs `target`, a function of `worker`. ServiceError if the machine allows none."""
        with _machine_allows():
            ours, theirs = socket.socketpair()
            try:
                process = self._context.Process(target=target, args=(theirs,), daemon=True)
                await asyncio.get_running_loop().run_in_executor(self._thread, process.start)
                reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_READ_AHEAD)
            except BaseException:
                ours.close()
                raise
            finally:
                theirs.close()
        return WorkerProcess(process, reader, writer)

    async def check(self) -> None:
        """Ensure that the process from which workers are forked is alive. ServiceError if the machine allows none.

        One that was killed is started again; its workers live on without it.
        """
        with _machine_allows():
            await asyncio.get_running_loop().run_in_executor(self._thread, forkserver.ensure_running)

    async def end(self, process: WorkerProcess) -> None:
        """Kill a worker and wait until it is gone."""
        process.kill()
        await asyncio.get_running_loop().run_in_executor(self._thread, process._process.join)

    def close(self) -> None:
        """Stop launching workers."""
        self._thread.shutdown()


@contextmanager
def _machine_allows() -> Iterator[None]:
    """Raise a ServiceError if no process can be started: no memory, files or processes are left."""
    try:
        yield
    except (OSError, EOFError) as error:  # the latter where the process that shall fork has died of it
        log.error('no process can be started: %r', error)
        raise retry_later(503, 'overloaded', 'the server can start no process for a session now') from error
