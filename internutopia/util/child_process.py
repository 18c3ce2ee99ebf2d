"""Child processes: Python processes for functions that may hang, crash, take all memory or disturb others.

A child calls functions of modules, in sequence, and ends with the process that started it, however it ends.
Functions, arguments and results are pickled; what a function prints goes to standard error.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec('P')
R = TypeVar('R')
_PACKAGES = str(Path(__file__).resolve().parents[2])
_PR_SET_PDEATHSIG = 1  # prctl(2)
_POLL_INTERVAL = 1.0  # s


class ChildDiedError(RuntimeError):
    """The process of a call has ended; `status` is its exit code, or minus the signal that killed it."""

    def __init__(self, status: int):
        end = f'exit code {status}'
        if status < 0:
            end = f'signal {-status}'
            with suppress(ValueError):
                end = signal.Signals(-status).name
        super().__init__(end)
        self.status = status


class LimitError(ValueError):
    """A limited call exceeded its time or memory, or ended its process."""


class ChildProcess:
    """Process that calls functions for this one; `options` are those of `subprocess.Popen`."""

    def __init__(self, **options: Any) -> None:
        self._process = start_python(_serve, os.getpid(), stdout=subprocess.PIPE, **options)

    def call(self, timeout: float | None, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function of a module.

        Raises:
            TimeoutError: It took longer than `timeout` [s]; the process was killed.
            ChildDiedError: The process has ended.
            Exception: What the function raises.
        """
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None
        expired = threading.Event()
        timer = threading.Timer(threading.TIMEOUT_MAX if timeout is None else timeout, self._expire, (expired,))
        timer.daemon = True
        timer.start()
        try:
            pickle.dump(pickle.dumps((function, args, kwargs)), requests)
            requests.flush()
            answer = pickle.load(answers)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            status = self.kill()
            raise TimeoutError if expired.is_set() else ChildDiedError(status) from error
        finally:
            timer.cancel()
        succeeded, result = pickle.loads(answer)
        if succeeded:
            return result
        raise result

    def kill(self) -> int:
        """Kill the process, also in a call of another thread; returns its exit status. May be called twice."""
        self._process.kill()
        status = self._process.wait()
        for pipe in filter(None, (self._process.stdin, self._process.stdout)):
            with suppress(OSError):  # there may be an unread request
                pipe.close()
        return status

    def _expire(self, expired: threading.Event) -> None:
        expired.set()
        self._process.kill()


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
    process = ChildProcess(stderr=subprocess.DEVNULL)
    limit = '' if memory is None else f'its limit of {memory:,} bytes of memory'
    try:
        return process.call(time, _call_with_memory, memory, function, args, kwargs)
    except TimeoutError:
        raise LimitError(f'it takes longer than {time:g} s') from None
    except ChildDiedError as error:
        causes = f'a fault in a reader, or {limit}' if limit else 'a fault in a reader'
        raise LimitError(f'it ended its process ({error}): {causes}') from None
    except MemoryError:
        raise LimitError(f'it needs more than {limit or "the machine has"}') from None
    finally:
        process.kill()


def start_python(function: Callable[..., None], *args: int | str, **options: Any) -> subprocess.Popen[Any]:
    """Start a process that imports a function as this one would, and calls it.

    Its standard input is a pipe, and signals of the terminal, such as Ctrl-C, do not reach it.

    Args:
        function: of a module.
        args: of the function.
        options: of `subprocess.Popen`.
    """
    path = f'import sys; sys.path[:] = {[*sys.path, _PACKAGES]!r}'
    call = f'from {function.__module__} import {function.__name__} as run; run(*{args!r})'
    command = [sys.executable, '-P', '-c', f'{path}; {call}']
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **options)


def end_with_parent(parent: int) -> None:
    """Make this process end with its parent, however it ends, also while it computes.

    On Linux it ends with the thread that started it, too.
    """
    if sys.platform == 'linux':
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before that
            os._exit(0)
    else:
        threading.Thread(target=_wait_for_end, args=(parent,), daemon=True).start()


def _wait_for_end(parent: int) -> None:
    process = multiprocessing.parent_process()
    if process is not None:
        process.join()
    while os.getppid() == parent and process is None:
        time.sleep(_POLL_INTERVAL)
    os._exit(0)


def _serve(parent: int) -> None:
    """Call functions until the parent has ended or closes the pipe."""
    end_with_parent(parent)
    answers = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)  # what functions print is no answer
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(requests,), daemon=True).start()
    while True:
        pickle.dump(_answer(requests.get()), answers)
        answers.flush()


def _receive(requests: SimpleQueue[bytes]) -> None:
    """Pass on requests; end the process, even if it is busy, when their sender is gone."""
    try:
        while True:
            requests.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)


def _answer(request: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(request)
        return pickle.dumps((True, function(*args, **kwargs)))
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:  # an error that cannot be pickled
            return pickle.dumps((False, ValueError(f'{type(error).__name__}: {error}')))


def _call_with_memory(memory: int | None, function: Callable[..., R], args: Any, kwargs: Any) -> R:
    """Call a function with this process limited to so many bytes more than it has."""
    if sys.platform == 'linux' and memory is not None:
        import resource

        with open('/proc/self/status') as status:
            used = next(1024 * int(line.split()[1]) for line in status if line.startswith('VmData:'))
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit = used + memory if most == resource.RLIM_INFINITY else min(used + memory, most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return function(*args, **kwargs)
