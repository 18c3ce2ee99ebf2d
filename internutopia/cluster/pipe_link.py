"""Pipe link: the way of calls to a worker on this machine."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

from internutopia.cluster.message_pipe import MessagePipe
from internutopia.cluster.messages import from_message, to_message
from internutopia.util import log


class PipeLink:
    """Caller of a worker through pipes, one call after the other.

    Attributes:
        served: the call of Ray that the worker is in, as long as it serves this.
        pipe: to the worker.
        busy: whether it has a call that it has not answered yet.
        intact: whether every message came and went as a whole: not where Ctrl-C was in the middle of one.
    """

    def __init__(self, actor: Any):
        (requests, own_requests), (own_replies, replies) = os.pipe(), os.pipe()
        fds, memories = {'requests': requests, 'replies': replies}, _memories()
        if memories is not None:
            fds |= {'request_memory': memories[1], 'reply_memory': memories[0]}
        self.pipe = MessagePipe(own_replies, own_requests, memories)
        self.busy = False
        self.intact = True
        self._server = 0  # its process, once it has said so
        self._lent = [requests, replies]
        self.served = actor.serve.remote(os.getpid(), fds)

    def welcome(self) -> None:
        """Close what was lent to the worker, which is ready, or whose pipe has ended."""
        self._close_lent()
        self._server = int.from_bytes(self.pipe.receive() or b'', 'little')

    def send(self, method: str, arguments: tuple[Any, ...]) -> None:
        """Call a method."""
        message = to_message((method, arguments))
        self.intact = False
        with suppress(BrokenPipeError):  # it has ended, which `receive` will say
            self.pipe.send(*message)
        self.busy = self.intact = True

    def receive(self) -> tuple[bool, Any] | None:
        """Wait for the answer: whether all went well, and the result or exception; None if the worker has ended."""
        self.intact = False
        message = self.pipe.receive()
        try:
            return None if message is None else from_message(message)
        except Exception as error:  # of a class that is not here, say
            return False, error

    def on_received(self) -> None:
        """Mark the answer as stored: another call can be made."""
        self.busy, self.intact = False, True

    def kill(self) -> None:
        """End the process of the worker at once. Ray requests it to end first, and waits 5 s."""
        if self._server:
            with suppress(ProcessLookupError):
                os.kill(self._server, signal.SIGKILL)

    def close(self) -> None:
        """Stop serving; may be called twice."""
        self._close_lent()
        self.pipe.close()

    def _close_lent(self) -> None:
        while self._lent:
            os.close(self._lent.pop())


def _memories() -> tuple[int, int] | None:
    """Create memory for replies and requests, as unnamed file descriptors, which the kernel frees with their users.

    None if there is none: long messages go through the pipes then.
    """
    fds: list[int] = []
    try:
        for name in ('replies', 'requests'):
            fds.append(os.memfd_create(f'internutopia-{os.getpid()}-{name}'))
    except (OSError, AttributeError) as error:  # an old kernel, a sandbox, too many files; another system
        log.warning('no shared memory (%s): workers of this machine send long messages through pipes, slower', error)
        for fd in fds:
            os.close(fd)
        return None
    return fds[0], fds[1]
