"""Pipe link: calls of a worker through pipes, from both ends, where it is on the machine of the main process.

A round trip to a Ray actor takes milliseconds, one through pipes microseconds. So Ray starts, places and ends workers,
and calls those on other machines. A worker on this machine is called through Ray only once, to `serve`.

Values are pickled; arrays are sent from their own memory, so only the message itself is copied.

Short messages go through the pipe. Long ones are written to shared memory and announced through the pipe, which would
take them page by page, the longest in pieces, with a context switch for each. A message must be received before the
next one is sent in the same direction, as its memory is reused. Without shared memory, long messages go through the
pipe, too.

A semaphore wakes a waiting process a little sooner, but does not report that the process at the other end has ended. A
socket takes more than twice as long as a pipe (`benchmarks/signals.py`).
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from internutopia.cluster.worker_process import pickled, this_node, this_place
from internutopia.util import log
from internutopia.util.errors import located
from internutopia.util.memory import collections_put_off

_IN_PIPE, _IN_MEMORY = b'\0', b'\1'  # begin a message, and the size of one that lies in memory
_LONG = 1 << 12  # bytes, a page: for more, a pipe takes pages from the kernel, and waits for its reader from 2^16 on
_GRAIN = 1 << 20  # bytes, in which memory is taken

Part = bytes | bytearray | memoryview


class MessagePipe:
    """The ends of two pipes, and memory of both directions: file descriptors that are closed with this object.

    The process at the other end continues until then.
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
        modes = {'requests': os.O_RDONLY, 'replies': os.O_WRONLY}
        opened = {name: os.open(f'/proc/{process}/fd/{fd}', modes.get(name, os.O_RDWR)) for name, fd in fds.items()}
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
        self._server = 0  # its process, once it is ready
        self._lent = [requests, replies]
        self.served = actor.serve.remote(os.getpid(), fds)

    def on_served(self) -> None:
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
