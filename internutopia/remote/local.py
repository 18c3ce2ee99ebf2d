"""Local server for a single program, for trials, tests and benchmarks without a second terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from internutopia.config import Config

_STOP_TIMEOUT = 30.0  # s, for a server that was requested to stop


@contextmanager
def local_server(config: Config | str | os.PathLike[str], *options: str) -> Iterator[str]:
    """Run `internutopia serve` on a free port of this machine for the duration of the block; yields its URL.

    Args:
        config: what to serve, or the path of its run file.
        *options: of the command, such as `'--threads', '2'`.

    Raises:
        RuntimeError: the server did not start; it has printed why.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'served.yaml'
        if isinstance(config, Config):
            config.to_yaml(path)
        else:
            path = Path(config)
        program = [sys.executable, '-c', 'from internutopia.cli import main; main()']
        command = [*program, 'serve', str(path), '--port', '0', '--quiet', *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                line = process.stdout.readline()
                if not line.startswith('serving on '):
                    raise RuntimeError(f'the server did not start: exit code {process.wait(_STOP_TIMEOUT)}')
                yield line.removeprefix('serving on ').strip()
            finally:
                process.terminate()
                try:
                    process.wait(_STOP_TIMEOUT)
                except subprocess.TimeoutExpired:
                    process.kill()
