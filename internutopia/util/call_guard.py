"""Call guard: one call of an object at a time, in the process that made the object.

A call changes an env, or a client of remote envs, in many steps, so a second call in between would see an inconsistent
state. With a guard, the second call raises an error and has no effect; the first one continues. The next call may come
from any thread.

class Envs:
    def __init__(self):
        self._guard = CallGuard(self)  # before anything else: pickle meets it first, and its error is the message

    @exclusive
    def step(self): ...
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from threading import get_ident
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from gymnasium.error import AlreadyPendingCallError

OwnerT = TypeVar('OwnerT')
ArgumentsT = ParamSpec('ArgumentsT')
ResultT = TypeVar('ResultT')
Method = Callable[Concatenate[OwnerT, ArgumentsT], ResultT]


_forks = 0  # between the first process and this one: `os.getpid` would cost a system call in each step


def _count_forks() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_forks)


class CallGuard:
    """The call of an object that is under way, and the process in which calls can be made.

    Args:
        owner: whose calls they are.

    Attributes:
        current: name and thread of the call that is under way; None if there is none.
        lock: held while `current` is read and set, not for that of a call.
        forks: how many forks there were before this process.
    """

    def __init__(self, owner: object):
        self._owner = type(owner).__name__
        self._process = os.getpid()
        self.current: tuple[str, int] | None = None
        self.lock = threading.Lock()
        self.forks = _forks

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f'{self._owner} can be neither pickled nor copied, as it is running: take what it was made from (its '
            'Config), and make another one there'
        )

    @property
    def forked(self) -> bool:
        """True if this process is a fork of that of the owner."""
        return self.forks != _forks

    def refuse(self, name: str, running: tuple[str, int] | None) -> NoReturn:
        """Raise the error of a call that cannot be made.

        Raises:
            RuntimeError: this process is a fork of that of the owner.
            AlreadyPendingCallError: another call is under way.
        """
        this = f'{self._owner}.{name}'
        if running is None:
            raise RuntimeError(
                f'{this}: process {os.getpid()} is a fork of process {self._process}, where this {self._owner} was '
                'made and has its threads: make another one here'
            )
        other, thread = f'{self._owner}.{running[0]}', running[1]
        if thread == get_ident():
            message = f'{this} was called from within {other}: code that runs in a call may read, but change nothing'
        else:
            names = {each.ident: each.name for each in threading.enumerate()}
            message = (
                f'{this}: {other} is under way in thread {names.get(thread, thread)!r}; make one call after the other, '
                f'or one {self._owner} for each thread'
            )
        raise AlreadyPendingCallError(message, running[0])


def exclusive(method: Method[OwnerT, ArgumentsT, ResultT]) -> Method[OwnerT, ArgumentsT, ResultT]:
    """Decorate a method that never runs during another call of its object; see `CallGuard.refuse` for errors."""
    return _guarded(method)


def reading(method: Method[OwnerT, ArgumentsT, ResultT]) -> Method[OwnerT, ArgumentsT, ResultT]:
    """Decorate a method that code in a call of the same object and thread, such as hooks, may call, too."""
    return _guarded(method, may_nest=True)


def closing(method: Method[OwnerT, ArgumentsT, None]) -> Method[OwnerT, ArgumentsT, None]:
    """Decorate `close` as `exclusive` does; in a fork it does nothing: resources are those of the other process."""
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

    # steps go through here: what it does is in one function, and the rest in `refuse`
    @functools.wraps(method)
    def guarded(self: Any, *args: ArgumentsT.args, **kwargs: ArgumentsT.kwargs) -> ResultT:
        guard: CallGuard = self._guard
        if guard.forks != _forks:
            guard.refuse(name, None)
        call = name, get_ident()
        try:
            with guard.lock:
                running = guard.current
                if running is None:
                    guard.current = call
            if running is not None and not (may_nest and running[1] == call[1]):
                guard.refuse(name, running)
            return method(self, *args, **kwargs)
        finally:  # without calling anything, at which Ctrl-C could step in
            if guard.current is call:
                guard.current = None

    return guarded
