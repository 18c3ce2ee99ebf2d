"""Call guards of a toy; those of envs are tested where the envs are."""

from __future__ import annotations

import copy
import pickle
import re
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from gymnasium.error import AlreadyPendingCallError
from overlaps import in_fork

from internutopia.util.call_guard import CallGuard, closing, exclusive, reading


class Counter:
    """Counts its changes; what else is done in a call is given."""

    def __init__(self) -> None:
        self._guard = CallGuard(self)
        self.count = 0

    @exclusive
    def change(self, within: Callable[[], Any] = int) -> Any:
        """Count one more."""
        self.count += 1
        return within()

    @reading
    def read(self, within: Callable[[], Any] = int) -> int:
        """The count so far."""
        within()
        return self.count

    @closing
    def close(self) -> None:
        """Count a lot more."""
        self.count += 100


@pytest.fixture
def counter() -> Counter:
    return Counter()


def in_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.mark.parametrize('name', ['change', 'read', 'close'])
def test_a_call_in_another_thread_is_refused_and_the_first_one_goes_on(counter: Counter, name: str) -> None:
    def overlap() -> int:
        thread = re.escape(threading.current_thread().name)
        text = rf"^Counter\.{name}: Counter\.change is under way in thread '{thread}'; make one call after the other"
        with pytest.raises(AlreadyPendingCallError, match=text) as caught:
            in_thread(getattr(counter, name))
        assert caught.value.name == 'change'
        return counter.count

    assert counter.change(overlap) == 1
    assert in_thread(counter.change) == 0
    assert in_thread(counter.read) == 2


def test_within_a_call_there_may_be_reading_but_no_change(counter: Counter) -> None:
    assert counter.change(counter.read) == 1
    for name in ('change', 'close'):
        with pytest.raises(
            AlreadyPendingCallError, match=rf'^Counter\.{name} was called from within Counter\.change: '
        ):
            counter.change(getattr(counter, name))
    assert counter.count == 3
    assert counter.read(counter.read) == 3
    with pytest.raises(AlreadyPendingCallError, match=r'^Counter\.change was called from within Counter\.read'):
        counter.read(counter.change)
    assert counter.count == 3


def test_what_is_raised_in_a_call_ends_it(counter: Counter) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    for call in (counter.change, counter.read):
        with pytest.raises(KeyboardInterrupt):
            call(interrupt)
        in_thread(call)


def test_an_interrupt_at_any_moment_ends_the_call(counter: Counter) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        while interrupted < 2000:
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + 1e-8 * interrupted)
                while True:
                    counter.change()
                    counter.read()
            except KeyboardInterrupt:
                interrupted += 1
                assert counter._guard.current is None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_in_a_fork_calls_are_refused_and_close_does_nothing(counter: Counter) -> None:
    for name in ('change', 'read'):
        answer = in_fork(getattr(counter, name))
        assert re.match(
            rf'RuntimeError: Counter\.{name}: process \d+ is a fork of process \d+, where this Counter was', answer
        )
    assert in_fork(lambda: (counter.close(), counter.count)) == (None, 0)
    assert counter.change(lambda: in_fork(lambda: (counter.close(), counter.count))) == (None, 1)
    assert in_fork(lambda: Counter().change()) == 0


@pytest.mark.parametrize('copied', [pickle.dumps, copy.deepcopy])
def test_what_is_guarded_says_why_it_cannot_be_copied(counter: Counter, copied: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r'^Counter can be neither pickled nor copied'):
        copied(counter)
