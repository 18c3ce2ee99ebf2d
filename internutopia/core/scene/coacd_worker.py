"""CoACD in a process of its own.

The library brings a C++ runtime that breaks others which are loaded after it (USD then writes empty lists, coacd
1.0.14), it may crash, and its own threads mostly wait for each other. So it is not imported: this file is also the
program that runs it, which takes pickled meshes on standard input and answers on standard output.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

Part = tuple[NDArray[np.float64], NDArray[np.integer]]  # vertices (n, 3), faces (m, 3)


class CoacdProcess:
    """Decomposes one mesh after the other; the process starts with the first one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, vertices: NDArray[np.float64], faces: NDArray[np.integer], options: dict[str, Any]) -> list[Part]:
        """Convex parts of a closed mesh; `options` are those of `coacd.run_coacd`.

        Raises:
            ImportError: CoACD is not installed.
            RuntimeError: It failed, or the process died.
        """
        self._process = self._process or subprocess.Popen(
            [sys.executable, '-P', __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, 'OMP_NUM_THREADS': '1'},  # we run as many processes as there are cores
            start_new_session=True,  # Ctrl-C is for us
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            pickle.dump((vertices, faces, options), self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.kill()
            self._process = None
            raise RuntimeError(f'the process that runs CoACD died ({error or "no answer"})') from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self) -> None:
        """End the process, whatever it does; `run` then raises RuntimeError."""
        if (process := self._process) is not None:
            process.kill()
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):  # there may be a request that nobody has read
                    pipe.close()


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    while True:
        try:
            vertices, faces, options = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(vertices, faces, options), answers)
        answers.flush()


def _answer(vertices: Any, faces: Any, options: dict[str, Any]) -> list[Part] | Exception:
    try:
        import coacd
    except ImportError as error:
        return ImportError(str(error))
    coacd.set_log_level('error')
    try:
        parts = coacd.run_coacd(coacd.Mesh(vertices, np.asarray(faces, np.int32)), **options)
    except Exception as error:  # whatever it is, the asking process has to know
        return RuntimeError(f'CoACD: {error}')
    return [(np.asarray(points), np.asarray(triangles)) for points, triangles in parts]


if __name__ == '__main__':
    _answers = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)  # what CoACD prints is no answer
    _serve(sys.stdin.buffer, _answers)
