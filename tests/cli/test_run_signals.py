"""Signals to `internutopia run`, whatever it does at the moment: the exit code says which, and nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from markers import slow_but
from runs import STILL, TASK, task

PATIENCE = 300.0  # s
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
START = 'from internutopia.cli import main; main()'
SLOW_MODULE = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == 'mujoco':
            os.kill(os.getpid(), NUMBER)

sys.meta_path.insert(0, Finder())
"""
SLOW_COACD = """
import time

def set_log_level(level):
    while True:
        time.sleep(1)
"""
TROUGH = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "World"
{
    def Mesh "trough" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"])
    {
        point3f[] points = [
            (0, 0, 0), (2, 0, 0), (2, 2, 0), (1, 1, 0), (0, 2, 0),
            (0, 0, 1), (2, 0, 1), (2, 2, 1), (1, 1, 1), (0, 2, 1)
        ]
        int[] faceVertexCounts = [5, 5, 4, 4, 4, 4, 4]
        int[] faceVertexIndices = [
            4, 3, 2, 1, 0, 5, 6, 7, 8, 9, 0, 1, 6, 5, 1, 2, 7, 6, 2, 3, 8, 7, 3, 4, 9, 8, 4, 0, 5, 9
        ]
        uniform token physics:approximation = "convexDecomposition"
    }
}
"""


class Command:
    """`internutopia run` in a process of its own, and the processes that it starts, by a variable that they inherit."""

    def __init__(self, file: Path, *options: str, start: str = START, **environment: str):
        self._mark = uuid.uuid4().hex
        self.temporary = Path(tempfile.mkdtemp(prefix='iu'))  # a short name: Ray's sockets must have one
        command = [sys.executable, '-c', start, 'run', str(file), '--out', str(file.parent / 'out'), *options]
        folders = {'TMPDIR': str(self.temporary), 'RAY_TMPDIR': str(self.temporary)}
        inherited = {name: value for name, value in os.environ.items() if name != 'RAY_ADDRESS'}
        self.process = subprocess.Popen(
            command,
            env={**inherited, 'MARK': self._mark, **folders, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def others(self) -> list[str]:
        """The command lines of its processes but itself."""
        found: list[str] = []
        for folder in Path('/proc').glob('[0-9]*'):
            try:
                if folder.name != str(self.process.pid) and self._mark.encode() in (folder / 'environ').read_bytes():
                    found.append((folder / 'cmdline').read_bytes().replace(b'\0', b' ').decode())
            except OSError:  # it has ended
                pass
        return found

    def wait_for(self, text: str) -> None:
        """Wait until it has a process with this text in its command line."""
        wait_until(lambda: self.process.poll() is not None or any(text in other for other in self.others()))
        assert self.process.poll() is None, self.process.communicate()

    def has_ended(self, code: int) -> None:
        """Wait for its end, and that of all others, without anything left."""
        stdout, stderr = self.process.communicate(timeout=PATIENCE)
        assert (self.process.returncode, stderr) == (code, ''), stdout
        wait_until(lambda: not self.others())
        wait_until(lambda: not list(self.temporary.iterdir()))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that will be true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.02)


@pytest.fixture
def command() -> Iterator[Callable[..., Command]]:
    commands: list[Command] = []

    def make(*arguments: object, **options: str) -> Command:
        commands.append(Command(*arguments, **options))  # pyright: ignore[reportArgumentType]
        return commands[-1]

    yield make
    for each in commands:
        each.process.kill()
        each.process.communicate()
        wait_until(lambda each=each: not each.others())
        each.temporary.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize('number', SIGNALS)
def test_while_it_is_imported(write, command, number):
    """What reads a module in C may take an exception for a mistake."""
    command(write(actions=STILL), start=SLOW_MODULE.replace('NUMBER', str(int(number))) + START).has_ended(128 + number)


@pytest.mark.nightly
@pytest.mark.parametrize('number', slow_but(signal.SIGTERM, of=SIGNALS))
def test_while_a_mesh_is_decomposed(write, command, tmp_path: Path, number):
    (tmp_path / 'trough.usda').write_text(TROUGH)
    (tmp_path / 'coacd.py').write_text(SLOW_COACD)
    paths = {'PYTHONPATH': f'{tmp_path}:{os.environ.get("PYTHONPATH", "")}', 'INTERNUTOPIA_CACHE_PATH': str(tmp_path)}
    run = command(write(actions=STILL, task_configs=[task(scene_asset_path=str(tmp_path / 'trough.usda'))]), **paths)
    run.wait_for('child_process')
    run.process.send_signal(number)
    run.has_ended(128 + number)


@pytest.mark.nightly
@pytest.mark.parametrize('stage', ['gcs_server', 'raylet/raylet', 'ray::'])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGKILL])
def test_while_ray_starts(write, command, stage, number):
    run = command(write(actions=STILL, task_configs=[task(repeat=100)]), '--processes', '2', '--no-picture')
    run.wait_for(stage)
    run.process.send_signal(number)
    run.has_ended(-number if number == signal.SIGKILL else 128 + number)


@pytest.mark.nightly
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGKILL])
def test_while_workers_make_steps(write, command, tmp_path: Path, number):
    run = command(write(actions=STILL, task_configs=[TASK, task(repeat=5000)]), '--processes', '2', '--no-picture')
    results = tmp_path / 'out' / 'results.jsonl'
    wait_until(lambda: run.process.poll() is not None or (results.exists() and results.stat().st_size > 0))
    run.process.send_signal(number)
    run.has_ended(-number if number == signal.SIGKILL else 128 + number)
