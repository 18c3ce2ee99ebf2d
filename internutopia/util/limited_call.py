"""Limited call: a function that runs in a separate process, with limits on its time and memory.

It is for code that may hang, crash or take all memory: then the process ends, and the caller gets a `LimitError`. The
process ends with the one that started it, however that ends (on Linux; elsewhere, when it has answered). This file is
also the program that the process runs; it takes pickles on standard input and answers on standard output.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

P = ParamSpec('P')
R = TypeVar('R')
_PR_SET_PDEATHSIG = 1  # prctl(2)


class LimitError(ValueError):
    """A limited call exceeded its time or memory, or ended its process."""


def call_limited(
    time: float | None, memory: int | None, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Call a function in a separate process; what it prints and logs is lost.

    Args:
        time: that it may take [s], with the second or so in which the process starts; None is no limit.
        memory: that the process may take beyond what it has when it starts [bytes], on Linux; None is no limit.
        function: of a module, by whose name the process finds it.
        args: they, and what it returns or raises, are pickled.
        kwargs: likewise.

    Raises:
        LimitError: It took longer, needed more, or its process died.
        Exception: What the function raises.
    """
    process = subprocess.Popen(
        [sys.executable, '-P', __file__, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us
    )
    try:
        # paths first: the function is imported from there
        request = pickle.dumps(sys.path) + pickle.dumps(memory) + pickle.dumps((function, args, kwargs))
        answer, _ = process.communicate(request, time)
    except subprocess.TimeoutExpired:
        raise LimitError(f'it takes longer than {time:g} s') from None
    finally:
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            with suppress(OSError):
                pipe.close()
    if not answer:
        limit = f', or its limit of {memory:,} bytes of memory' if memory is not None else ''
        raise LimitError(f'it ended its process ({_end(process.returncode)}), by a fault in a reader{limit}')
    succeeded, result = pickle.loads(answer)
    if succeeded:
        return result
    raise LimitError(f'it needs more than its limit of {memory:,} bytes of memory') if result is None else result


def _end(status: int) -> str:
    if status >= 0:
        return f'exit code {status}'
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f'signal {-status}'


def _end_with(parent: int) -> None:
    """Make the system end this process with its parent."""
    if sys.platform == 'linux':
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before that
            os._exit(0)


def _limit_memory(memory: int | None) -> None:
    if sys.platform == 'linux' and memory is not None:
        import resource

        with open('/proc/self/status') as status:
            used = next(1024 * int(line.split()[1]) for line in status if line.startswith('VmData:'))
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit = used + memory if most == resource.RLIM_INFINITY else min(used + memory, most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer() -> bytes:
    requests = sys.stdin.buffer
    sys.path[:] = pickle.load(requests)
    memory = pickle.load(requests)
    function, args, kwargs = pickle.load(requests)
    _limit_memory(memory)
    try:
        return pickle.dumps((True, function(*args, **kwargs)))
    except MemoryError:
        return pickle.dumps((False, None))
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:  # an error that cannot be pickled
            return pickle.dumps((False, ValueError(f'{type(error).__name__}: {error}')))


if __name__ == '__main__':
    _end_with(int(sys.argv[1]))
    with os.fdopen(os.dup(1), 'wb') as _answers:
        os.dup2(2, 1)  # what readers print is no answer
        _answers.write(_answer())
    os._exit(0)  # whatever threads still do
