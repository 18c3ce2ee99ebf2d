"""Message pipe: messages from process to process of one machine, one at a time in each direction.

Values are pickled, with arrays as they lie in memory, so that nothing is copied but the message itself.

Short messages go through the pipe. Long ones lie in memory that both processes have, and the pipe says so: it would
take them page by page, and the longest in pieces, with a change of processes for each. A message is to be received
before the next one is sent in the same direction: its memory is written anew. Where no memory can be had, long
messages go through the pipe, too.

A semaphore wakes a waiting process a little sooner, but does not say when the process at the other end has ended. A
socket takes more than twice as long as a pipe (`benchmarks/signals.py`).
"""

from __future__ import annotations

import mmap
import os
import pickle
import struct
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

_IN_PIPE, _IN_MEMORY = b'\0', b'\1'  # begin a message, and the size of one that lies in memory
_LONG = 1 << 12  # bytes, a page: for more, a pipe takes pages from the kernel, and waits for its reader from 2^16 on
_GRAIN = 1 << 20  # bytes, in which memory is taken

Part = bytes | bytearray | memoryview


class MessagePipe:
    """The ends of two pipes, and memory of both directions: file descriptors that are closed with this object.

    The process at the other end goes on until then.
    """

    def __init__(self, source: int, target: int, memories: tuple[int, int] | None = None):
        self._source, self._target = Connection(source, writable=False), Connection(target, readable=False)
        self._inbox, self._outbox = (None, None) if memories is None else map(_Memory, memories)

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the file descriptor that can be read when there is a message, or the end."""
        return self._source.fileno()

    def send(self, *parts: Part) -> None:
        """Send a message, given in parts. BrokenPipeError if the other end is closed."""
        size = sum(map(len, parts))
        if size > _LONG and self._outbox is not None and self._outbox.write(parts, size):
            self._target.send_bytes(_IN_MEMORY + size.to_bytes(8, 'little'))
        else:
            self._target.send_bytes(b''.join((_IN_PIPE, *parts)))

    def poll(self, timeout: float) -> bool:
        """Return whether there is a message, or the end, within so many seconds."""
        return self._source.poll(timeout)

    def receive(self) -> bytearray | None:
        """Wait for the next message; None if the other process has ended or closed the pipe."""
        try:
            message = memoryview(self._source.recv_bytes())
        except (EOFError, OSError):  # the end, in the middle of a message or not
            return None
        if message[:1] == _IN_PIPE:
            return bytearray(message[1:])
        assert self._inbox is not None
        return self._inbox.read(int.from_bytes(message[1:], 'little'))

    def close(self) -> None:
        """Close everything; may be called twice."""
        for end in (self._source, self._target, self._inbox, self._outbox):
            if end is not None:
                end.close()


class _Memory:
    """Memory of messages of one direction, which grows with the longest; its writer takes it, its reader follows."""

    def __init__(self, fd: int):
        self._fd = fd
        self._map: mmap.mmap | None = None

    def write(self, parts: Sequence[Part], size: int) -> bool:
        """Write a message. False if there is no memory for it."""
        try:
            target = self._mapped(size, grow=True)
        except OSError:
            return False
        start = 0
        for part in parts:
            target[start : start + len(part)] = part
            start += len(part)
        return True

    def read(self, size: int) -> bytearray:
        """Return the message that was written, as a copy."""
        return bytearray(memoryview(self._mapped(size))[:size])

    def close(self) -> None:
        """Release the memory; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd, self._map = -1, None

    def _mapped(self, size: int, grow: bool = False) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            if grow:
                # taken at once: what is not there would end the process that writes to it
                os.posix_fallocate(self._fd, 0, -(-size // _GRAIN) * _GRAIN)
            self._map = mmap.mmap(self._fd, 0)
        return self._map


_ALIGNMENT = 16  # bytes, of arrays in a message


def to_message(value: Any) -> list[Part]:
    """Convert a value to parts of a message, in which classes of the main script may be.

    These are the number of further parts and their sizes (int64); what was pickled; each array.
    """
    rest, arrays = _pickled(value)
    contents: list[Part] = [rest, *(array.raw() for array in arrays)]
    parts: list[Part] = [struct.pack(f'<{1 + len(contents)}q', len(contents), *map(len, contents))]
    end = len(parts[0])
    for content in contents:
        gap = -end % _ALIGNMENT
        parts += [bytes(gap), content]
        end += gap + len(content)
    return parts


def from_message(message: bytearray) -> Any:
    """Restore the value; its arrays lie in the message."""
    memory = memoryview(message)
    (count,) = struct.unpack_from('<q', memory)
    contents: list[memoryview] = []
    end = 8 * (1 + count)
    for size in struct.unpack_from(f'<{count}q', memory, 8):
        start = end + -end % _ALIGNMENT
        end = start + size
        contents.append(memory[start:end])
    return pickle.loads(contents[0], buffers=contents[1:])


def _pickled(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """Return a value without its arrays, and these.

    What pickles classes by value is written in Python, and takes twice as long: it has its turn only where there are
    such classes.
    """
    from ray import cloudpickle

    arrays: list[pickle.PickleBuffer] = []
    by_value = ('__main__', *cloudpickle.list_registry_pickle_by_value())  # pyright: ignore[reportPrivateImportUsage]
    with suppress(Exception):  # a function without a name, say
        rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        if not any(module.encode() in rest for module in by_value):
            return rest, arrays
    arrays.clear()
    return cloudpickle.dumps(value, protocol=5, buffer_callback=arrays.append), arrays  # pyright: ignore[reportPrivateImportUsage]
