"""Real servers on loopback: in a thread of the tests, or in a process of their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE

from internutopia.cli.run_file import read_run_file
from internutopia.config import Config
from internutopia.remote.server.serve import Server, listen
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.users import Users

_MANY = 10**6
_FREE = {  # tests do not wait for one another
    'requests_per_second': 1e6,
    'burst': _MANY,
    'address_requests_per_second': 1e6,
    'address_burst': _MANY,
}


@dataclass(frozen=True)
class Served:
    """A server in a thread."""

    url: str
    config: Config
    loop: asyncio.AbstractEventLoop


class ServerProcess:
    """`internutopia serve` in a process of its own."""

    def __init__(self, arguments: list[str], log: Path):
        self.log = log
        command = [sys.executable, '-c', 'from internutopia.cli import main; main()', 'serve', *arguments]
        with open(log, 'w') as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.url = line.removeprefix('serving on ').strip()
        assert self.url.startswith('http'), line + log.read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    """What servers log of requests and sessions can be looked at."""
    caplog.set_level('INFO', 'internutopia')


@pytest.fixture(scope='session')
def serve() -> Iterator[Callable[..., Served]]:
    """`serve(config, tokens=PATH, **settings)` gives a server of a config or run file; the same for equal arguments."""
    made: dict[str, Served] = {}
    running: list[tuple[Server, threading.Thread]] = []

    def start(config: Config | Path, tokens: Path | None = None, **settings: Any) -> Served:
        config = read_run_file(config).config if isinstance(config, Path) else config
        key = json.dumps([config.model_dump_json(), str(tokens), settings])
        if key in made:
            return made[key]
        users = Users(tokens)
        sock = listen('127.0.0.1', 0, users.open)
        ready = threading.Event()
        faults: list[Exception] = []
        loops: list[asyncio.AbstractEventLoop] = []

        async def run() -> None:
            loops.append(asyncio.get_running_loop())
            try:
                server = await Server.of(config, users, Settings(**{**_FREE, **settings}))
                running.append((server, thread))
            except Exception as fault:
                faults.append(fault)
                return
            finally:
                ready.set()
            with sock:
                await server.serve([sock])

        thread = threading.Thread(target=lambda: asyncio.run(run()), name='server', daemon=True)
        thread.start()
        assert ready.wait(PATIENCE)
        if faults:
            raise faults[0]
        made[key] = Served(f'http://127.0.0.1:{sock.getsockname()[1]}', config, loops[0])
        return made[key]

    yield start
    for server, _ in running:
        server.should_exit = True
    for _, thread in running:
        thread.join(PATIENCE)


@pytest.fixture
def serve_process(tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    """`serve_process(config, *options)` gives a server in a process of its own."""
    made: list[ServerProcess] = []

    def start(config: Config, *options: str) -> ServerProcess:
        path = tmp_path / f'served_{len(made)}.yaml'
        config.to_yaml(path)
        made.append(ServerProcess([str(path), '--port', '0', *options], path.with_suffix('.log')))
        return made[-1]

    yield start
    for server in made:
        if server.process.poll() is None:
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait()


@pytest.fixture
def worker_pid(caplog: pytest.LogCaptureFixture) -> Callable[[str], int]:
    """`worker_pid(session_id)` of a server in a thread, as its log says."""

    def look_up(session_id: str) -> int:
        lines = (record.getMessage() for phase in ('setup', 'call') for record in caplog.get_records(phase))
        line = next(line for line in lines if line.startswith(f'session={session_id} ') and 'pid=' in line)
        return int(line.partition('pid=')[2].split()[0])

    return look_up
