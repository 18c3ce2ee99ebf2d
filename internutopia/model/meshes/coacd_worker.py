"""CoACD in a separate process.

The library brings a C++ runtime that breaks others which are loaded after it (USD then writes empty lists, coacd
1.0.14), it may crash, and its own threads mostly wait for each other. So it is not imported: this file is also the
program that runs it, which takes pickled meshes on standard input and answers on standard output. The process ends
with the one that started it, however that ends, also while it computes.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_PR_SET_PDEATHSIG = 1  # prctl(2)

Part = tuple[NDArray[np.float64], NDArray[np.integer]]  # vertices (n, 3), faces (m, 3)


class CoacdProcess:
    """CoACD process that decomposes one mesh after the other; started with the first one.

    On Linux it ends with the thread that ran the first one, too.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def run(
        self, vertices: NDArray[np.float64], faces: NDArray[np.integer], options: dict[str, Any], seconds: int
    ) -> list[Part]:
        """Return the convex parts of a closed mesh.

        Args:
            vertices: `(n, 3)` [m].
            faces: `(m, 3)`, counterclockwise seen from outside.
            options: those of `coacd.run_coacd`.
            seconds: how much processor time it may take [s], where the system measures it (not on Windows).

        Raises:
            ImportError: CoACD is not installed.
            TimeoutError: It took longer.
            RuntimeError: It failed, the process died, or this is closed.
        """
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump((vertices, faces, options, seconds), process.stdin)
            process.stdin.flush()
            answer = pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            status = self._kill()
            if status is not None and -status == getattr(signal, 'SIGXCPU', None):
                raise TimeoutError(f'more than {seconds} s of processor time') from error
            raise RuntimeError(f'the process that runs CoACD died ({error or "no answer"})') from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End the process, even if it is busy, for good: `run` raises RuntimeError, now and later."""
        with self._lock:
            self._closed = True
        self._kill()

    def _started(self) -> subprocess.Popen[bytes]:
        """Return the process, which is started if there is none."""
        with self._lock:
            if self._closed:
                raise RuntimeError('the process that runs CoACD was closed')
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, '-P', __file__, str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, 'OMP_NUM_THREADS': '1'},  # we run as many processes as there are cores
                    start_new_session=True,  # Ctrl-C is for us
                )
            return self._process

    def _kill(self) -> int | None:
        """Kill the process, even if it is busy; returns its exit status, None if there is none."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        status = process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            with suppress(OSError):  # there may be an unread request
                pipe.close()
        return status


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    wanted: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_receive, args=(requests, wanted), daemon=True).start()
    while True:
        vertices, faces, options, seconds = wanted.get()
        _limit_time(seconds)
        pickle.dump(_answer(vertices, faces, options), answers)
        answers.flush()


def _receive(requests: BinaryIO, wanted: SimpleQueue[Any]) -> None:
    """Pass on requests; end the process, even if it is busy, when their sender is gone."""
    try:
        while True:
            wanted.put(pickle.load(requests))
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    """Make the system end this process with its parent: others that were forked may keep the request pipe open."""
    if sys.platform == 'linux':
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before that
            os._exit(0)


def _limit_time(seconds: int) -> None:
    """Make the system end this process after so much computing time from now on."""
    with suppress(ImportError):  # Windows
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(usage.ru_utime + usage.ru_stime) + 1 + seconds
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # that it ends so is no crash
        resource.setrlimit(resource.RLIMIT_CPU, (limit, most))


def _answer(vertices: Any, faces: Any, options: dict[str, Any]) -> list[Part] | Exception:
    try:
        import coacd
    except ImportError as error:
        return ImportError(str(error))
    coacd.set_log_level('error')
    try:
        parts = coacd.run_coacd(coacd.Mesh(vertices, np.asarray(faces, np.int32)), **options)
    except Exception as error:  # of any type, it goes to the calling process
        return RuntimeError(f'CoACD: {error}')
    return [(np.asarray(points), np.asarray(triangles)) for points, triangles in parts]


if __name__ == '__main__':
    _end_with(int(sys.argv[1]))
    _answers = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)  # what CoACD prints is no answer
    _serve(sys.stdin.buffer, _answers)
