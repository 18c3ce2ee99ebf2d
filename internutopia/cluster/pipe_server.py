"""Pipe server: a worker that is called through pipes by the main process, where both are on one machine.

A call of a Ray actor takes milliseconds there and back, one through pipes microseconds. So Ray starts, places and ends
workers, and calls those of other machines; one of this machine it calls once, to `serve`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from internutopia.cluster.message_pipe import MessagePipe, Part
from internutopia.cluster.messages import from_message, to_message
from internutopia.cluster.worker_process import pickled, this_node, this_place
from internutopia.util.errors import located
from internutopia.util.garbage import collections_put_off

MISTAKES = ValueError, KeyError, OSError
"""Errors of the user; all others are reported with the place in the code."""


class PipeServer:
    """Base class of workers."""

    def node(self) -> str | None:
        """Return the machine, by its id in the cluster."""
        return this_node()

    def answer(self, method: str, arguments: Sequence[Any]) -> tuple[bool, Any]:
        """Call a method: whether all went well, and its result or the exception."""
        try:
            return True, getattr(self, method)(*arguments)
        except Exception as error:
            return False, located(error, this_place(), MISTAKES, pickled)

    def serve(self, process: int, fds: Mapping[str, int]) -> None:
        """Make calls for a process on this machine until it has ended or closes the pipe.

        The first message says that this is ready, and the id of this process (int32). A request is what `answer` takes,
        a reply what it gives. OSError if what the other process has cannot be had here.

        Args:
            process: its id.
            fds: its file descriptors `requests` and `replies`, and of the memory of both, if there is any, as
                `request_memory` and `reply_memory`.
        """
        opened = open_fds(process, fds)
        memories = (opened['request_memory'], opened['reply_memory']) if 'request_memory' in opened else None
        pipe = MessagePipe(opened['requests'], opened['replies'], memories)
        _yield_to_caller()
        try:
            pipe.send(os.getpid().to_bytes(4, 'little'))
            while (request := pipe.receive()) is not None:
                with collections_put_off():
                    pipe.send(*self._answer_message(request))
        except BrokenPipeError:
            """The reply is not waited for."""
        finally:
            pipe.close()

    def _answer_message(self, request: bytearray) -> list[Part]:
        try:
            return to_message(self.answer(*from_message(request)))
        except Exception as error:  # the request or the result cannot be pickled
            return to_message((False, located(error, this_place(), (), pickled)))


def _yield_to_caller() -> None:
    """Yield the processor to the thread that wakes this one, so that it can first call all workers.

    It gets no less time for that: Linux only makes a thread of `SCHED_BATCH` wait its turn (sched(7)).
    """
    if hasattr(os, 'SCHED_BATCH'):
        with suppress(OSError):  # a sandbox that forbids it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def open_fds(process: int, fds: Mapping[str, int]) -> dict[str, int]:
    """Open file descriptors of another process of this machine in this one. OSError if that fails."""
    modes = {'requests': os.O_RDONLY, 'replies': os.O_WRONLY}
    return {name: os.open(f'/proc/{process}/fd/{fd}', modes.get(name, os.O_RDWR)) for name, fd in fds.items()}
