"""Calls that overlap another one, or come from a fork: a task that stops where a test wants it, a forked child."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

from internutopia.core.task import BaseTask

PATIENCE = 300.0  # s, that anything may take that is waited for: a busy machine is slow


@BaseTask.register('HookedTask')
class HookedTask(BaseTask):
    """Never done; calls `hook` in every step of every env."""

    hook: ClassVar[Callable[[], Any] | None] = None

    def is_done(self) -> bool:
        if HookedTask.hook is not None:
            HookedTask.hook()
        return False


@contextmanager
def hooked(hook: Callable[[], Any]) -> Iterator[None]:
    """While this is entered, a step calls `hook`."""
    HookedTask.hook = hook
    try:
        yield
    finally:
        HookedTask.hook = None


@contextmanager
def held(step: Callable[[], Any]) -> Iterator[Future[Any]]:
    """While this is entered, another thread is in the middle of a step; it goes on afterwards, to the result."""
    entered, go = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        assert go.wait(PATIENCE)

    with ThreadPoolExecutor(1, 'stepping') as pool, hooked(wait):
        result = pool.submit(step)
        try:
            assert entered.wait(PATIENCE)
            yield result
        finally:
            go.set()
            result.exception(PATIENCE)


def in_fork(call: Callable[[], Any]) -> Any:
    """What a call returns in a forked child, or the type and text of what it raises there. It must not hang."""
    context = multiprocessing.get_context('fork')
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_tell, args=(call, there))
    child.start()
    try:
        assert here.poll(PATIENCE), 'hangs in a fork'
        answer = here.recv()
        child.join(PATIENCE)
        assert child.exitcode == 0
        return answer
    finally:
        child.kill()
        child.join()


def _tell(call: Callable[[], Any], there: Any) -> None:
    try:
        answer = call()
    except Exception as error:
        answer = f'{type(error).__name__}: {error}'
    there.send(answer)
