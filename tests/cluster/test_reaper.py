"""Reaper: what was started ends with the program, however that ends, and leaves no folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ray_toys import PATIENCE, alive, wait_until

from internutopia.cluster.reaper import Reaper

SCRIPT = """
import os, signal, subprocess, sys
from internutopia.cluster.reaper import Reaper

def sleep():
    return subprocess.Popen(['sleep', '1000'], start_new_session=True)

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit that it is ignored
reaper = Reaper('folder')
with reaper.marking():
    pids = [sleep().pid]
    os.system('sleep 1000 & echo $!')
print(pids[0], sleep().pid, flush=True)
signal.pause()
"""


@contextmanager
def program(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[int], int]]:
    """A program, two processes that it has marked (one is an orphan), and one that it has not."""
    (folder / 'folder' / 'logs').mkdir(parents=True)
    with subprocess.Popen([sys.executable, '-c', SCRIPT], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        orphan = int(process.stdout.readline())
        child, other = map(int, process.stdout.readline().split())
        try:
            yield process, [orphan, child], other
        finally:
            process.kill()
            os.kill(other, signal.SIGKILL)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_marked_processes_end_with_their_program(tmp_path: Path, number):
    with program(tmp_path) as (process, marked, other):
        process.send_signal(number)
        process.wait(PATIENCE)
        wait_until(lambda: not any(map(alive, marked)))
        wait_until(lambda: not (tmp_path / 'folder').exists())
        assert alive(other)


@pytest.mark.parametrize('keep', [False, True])
def test_they_can_be_ended_before(tmp_path: Path, keep: bool):
    folder = tmp_path / 'folder'
    folder.mkdir()
    reaper = Reaper(str(folder))
    with reaper.marking():
        process = subprocess.Popen(['sleep', '1000'])
    if keep:
        reaper.keep_folder()
    reaper.end()
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert folder.exists() == keep
    reaper.end()
    assert not any(name.startswith('_INTERNUTOPIA') for name in os.environ)
