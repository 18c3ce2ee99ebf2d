"""Message pipe: short messages from process to process of one machine, one at a time in each direction.

A semaphore wakes a waiting process a little sooner, but does not say when the process at the other end has ended. A
socket takes more than twice as long as a pipe (`benchmarks/signals.py`).
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

_SIZE = 4  # bytes, of the length of a message


class MessagePipe:
    """The ends of two pipes, file descriptors that are closed with this object."""

    def __init__(self, source: int, target: int):
        self._source, self._target = source, target
        self._events = select.poll()
        self._events.register(source, select.POLLIN)

    def send(self, message: bytes) -> None:
        """Send a message. BrokenPipeError if nobody is there."""
        data = memoryview(len(message).to_bytes(_SIZE, 'little') + message)
        while data:
            data = data[os.write(self._target, data) :]

    def poll(self, timeout: float) -> bool:
        """Whether there is a message, or the end, within so many seconds."""
        return bool(self._events.poll(1e3 * timeout))

    def receive(self) -> bytes | None:
        """Wait for the next message; None if the other process has ended or closed the pipe."""
        data = bytearray()
        while len(data) < _SIZE or len(data) < _SIZE + int.from_bytes(data[:_SIZE], 'little'):
            part = os.read(self._source, 1 << 16)
            if not part:
                return None
            data += part
        return bytes(data[_SIZE:])

    def close(self) -> None:
        """Close both ends; twice is fine."""
        for fd in (self._source, self._target):
            if fd >= 0:
                with suppress(OSError):
                    os.close(fd)
        self._source = self._target = -1
