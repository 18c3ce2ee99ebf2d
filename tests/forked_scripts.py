"""Run scripts in processes that have what scripts import: to import torch anew takes seconds in each.

Scripts of users find libraries there, and nothing of ours: one that does not import what it needs still fails.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_LIBRARIES = 'numpy', 'pydantic', 'torch', 'mujoco', 'gymnasium', 'scipy.spatial', 'PIL.Image', 'stable_baselines3'
OURS = (
    *('internutopia.core.vec_env', 'internutopia.core.gym_env'),
    *(f'internutopia_extension.{each}' for each in ('controllers', 'metrics', 'objects', 'robots', 'sensors', 'tasks')),
)
"""Modules that scripts for version 2 import."""
LIMIT = 600  # s, for a script that hangs


def run_script(
    script: Path | str,
    arguments: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str] | None = None,
    modules: Sequence[str] = _LIBRARIES,
    stdin: str = os.devnull,
) -> subprocess.CompletedProcess[str]:
    """Run a script (a file, or a module below `cwd`) in a process of its own; it is killed after `LIMIT`.

    Args:
        script: the script.
        arguments: its arguments.
        cwd: its working directory.
        variables: environment variables besides those of the tests.
        modules: what is imported already.
        stdin: file that it reads.
    """
    server = _server(tuple(modules))
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder, 'out'), Path(folder, 'err')]
        command = [str(script), *arguments]
        environment = {**os.environ, **(variables or {})}
        server.stdin.write(json.dumps([command, str(cwd), environment, stdin, [str(file) for file in outputs]]) + '\n')
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(command, code, *(file.read_text() for file in outputs))


@functools.cache
def _server(modules: tuple[str, ...]) -> subprocess.Popen[str]:
    """Start the process that others are forked from, one for each process that runs tests."""
    program = [sys.executable, str(Path(__file__).resolve()), *modules]
    server = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.terminate)
    return server


def _fork_scripts() -> None:
    """Run each script that stdin names in a fork, and answer with its exit code; returns in the fork alone."""
    for line in sys.stdin:
        command, cwd, environment, stdin, outputs = json.loads(line)
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        for stream, file in zip((1, 2), outputs, strict=True):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), stream)
        os.dup2(os.open(stdin, os.O_RDONLY | os.O_NOCTTY), 0)
        sys.stdin = open(0)  # noqa: SIM115
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = command
        sys.path.insert(0, str(Path(command[0]).parent))
        sys.path[1:1] = filter(None, environment.get('PYTHONPATH', '').split(os.pathsep))
        if 'internutopia.compat' in sys.modules:
            sys.modules['internutopia.compat'].register()  # as an import of ours does it, by these variables
        signal.alarm(LIMIT)
        if command[0].endswith('.py'):
            runpy.run_path(command[0], run_name='__main__')
        else:
            runpy.run_module(command[0], run_name='__main__')
        return
    os._exit(0)


if __name__ == '__main__':
    sys.path.pop(0)  # the folder of the tests
    for name in sys.argv[1:]:
        __import__(name)
    _fork_scripts()
