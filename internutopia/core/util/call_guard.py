"""Call guard: one call of an object at a time, in the process that made the object.

Envs, and clients of envs elsewhere, are changed by their calls in many steps, so that a second call in between would
find them half-way. With a guard the second call is an error and nothing has happened; the first one goes on. Whoever is
not in a call may make the next one, from any thread.

class Envs:
    def __init__(self):
        self._guard = CallGuard(self)  # before anything else: pickle meets it first and says why it cannot go on

    @exclusive
    def step(self): ...
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Concatenate, NamedTuple, NoReturn, ParamSpec, TypeVar

from gymnasium.error import AlreadyPendingCallError

OwnerT = TypeVar('OwnerT')
ArgumentsT = ParamSpec('ArgumentsT')
ResultT = TypeVar('ResultT')
Method = Callable[Concatenate[OwnerT, ArgumentsT], ResultT]


class Call(NamedTuple):
    """A call under way, and the thread that it is made in."""

    name: str
    thread: int


class CallGuard:
    """Knows the call that is under way, and the process in which calls can be made.

    Args:
        owner: whose calls they are.

    Attributes:
        current: the call that is under way; None if there is none.
    """

    def __init__(self, owner: object):
        self._owner = type(owner).__name__
        self._process = os.getpid()
        self._lock = threading.Lock()  # for the moment of a comparison, not for that of a call
        self.current: Call | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f'{self._owner} can be neither pickled nor copied, as it is running: take what it was made from (its '
            'Config), and make another one there'
        )

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of that of the owner."""
        return os.getpid() != self._process

    def begin(self, call: Call, may_nest: bool) -> None:
        """Begin a call; whoever does that ends it by setting `current` to None.

        Args:
            call: the call.
            may_nest: whether it can be made from within another one of the same thread, which is left as it is.

        Raises:
            AlreadyPendingCallError: another call is under way.
            RuntimeError: this process is a fork of that of the owner.
        """
        if self.forked:
            raise RuntimeError(
                f'{self._owner}.{call.name}: process {os.getpid()} is a fork of process {self._process}, where this '
                f'{self._owner} was made and has its threads: make another one here'
            )
        with self._lock:
            running = self.current
            if running is None:
                self.current = call
        if running is None or (may_nest and running.thread == call.thread):
            return
        this, other = f'{self._owner}.{call.name}', f'{self._owner}.{running.name}'
        if running.thread == call.thread:
            message = f'{this} was called from within {other}: code that runs in a call may read, but change nothing'
        else:
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            message = (
                f'{this}: {other} is under way in thread {names.get(running.thread, running.thread)!r}; make one call '
                f'after the other, or one {self._owner} for each thread'
            )
        raise AlreadyPendingCallError(message, running.name)


def exclusive(method: Method[OwnerT, ArgumentsT, ResultT]) -> Method[OwnerT, ArgumentsT, ResultT]:
    """Method that is made by itself, never during another call of its object; see `CallGuard.begin` for errors."""
    return _guarded(method)


def reading(method: Method[OwnerT, ArgumentsT, ResultT]) -> Method[OwnerT, ArgumentsT, ResultT]:
    """Method that may also be called by code that runs in a call of the same object and thread, such as hooks."""
    return _guarded(method, may_nest=True)


def closing(method: Method[OwnerT, ArgumentsT, None]) -> Method[OwnerT, ArgumentsT, None]:
    """As `exclusive`, for `close`: in a fork it does nothing, since all that could be freed is the other process's."""
    guarded = _guarded(method)

    @functools.wraps(method)
    def close(self: Any, *args: ArgumentsT.args, **kwargs: ArgumentsT.kwargs) -> None:
        if not self._guard.forked:
            guarded(self, *args, **kwargs)

    return close


def _guarded(
    method: Method[OwnerT, ArgumentsT, ResultT], may_nest: bool = False
) -> Method[OwnerT, ArgumentsT, ResultT]:
    name = method.__name__

    @functools.wraps(method)
    def guarded(self: Any, *args: ArgumentsT.args, **kwargs: ArgumentsT.kwargs) -> ResultT:
        guard: CallGuard = self._guard
        call = Call(name, threading.get_ident())
        try:
            guard.begin(call, may_nest)
            return method(self, *args, **kwargs)
        finally:  # without calling anything, at which Ctrl-C could step in
            if guard.current is call:
                guard.current = None

    return guarded
