"""CoACD in a separate process.

The library brings a C++ runtime that breaks others which are loaded after it (USD then writes empty lists, coacd
1.0.14), it may crash, and its own threads mostly wait for each other. So it is imported in a child process alone.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.child_process import ChildDiedError, ChildProcess

Part = tuple[NDArray[np.float64], NDArray[np.integer]]  # vertices (n, 3), faces (m, 3)


class CoacdProcess:
    """CoACD process that decomposes one mesh after the other; started with the first one.

    On Linux it ends with the thread that ran the first one, too.
    """

    def __init__(self) -> None:
        self._process: ChildProcess | None = None
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
        with self._lock:
            if self._closed:
                raise RuntimeError('the process that runs CoACD was closed')
            if self._process is None:  # of one thread: we run as many processes as there are cores
                self._process = ChildProcess(env={**os.environ, 'OMP_NUM_THREADS': '1'})
            process = self._process
        try:
            return process.call(None, _decompose, vertices, faces, options, seconds)
        except ChildDiedError as error:
            with self._lock:
                self._process = None
            if -error.status == getattr(signal, 'SIGXCPU', None):
                raise TimeoutError(f'more than {seconds} s of processor time') from error
            raise RuntimeError(f'the process that runs CoACD died ({error})') from error

    def close(self) -> None:
        """End the process, even if it is busy, for good: `run` raises RuntimeError, now and later."""
        with self._lock:
            self._closed = True
        if self._process is not None:
            self._process.kill()


def _decompose(vertices: Any, faces: Any, options: dict[str, Any], seconds: int) -> list[Part]:
    """Decompose a mesh, in the process that does so."""
    _limit_time(seconds)
    import coacd

    coacd.set_log_level('error')
    try:
        parts = coacd.run_coacd(coacd.Mesh(vertices, np.asarray(faces, np.int32)), **options)
    except Exception as error:  # of any type, it goes to the calling process
        raise RuntimeError(f'CoACD: {error}') from None
    return [(np.asarray(points), np.asarray(triangles)) for points, triangles in parts]


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
