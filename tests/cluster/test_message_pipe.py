"""Messages between processes of one machine: whole, in order, of any length, with memory for long ones and without."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ray_toys import same

from internutopia.cluster.pipe_link import MessagePipe, from_message, to_message

SHORT, LONG, LONGER = 100, 200_000, 3_000_000  # bytes; a pipe takes 65536 without a reader


@pytest.fixture
def make_pair() -> Iterator[Callable[..., tuple[MessagePipe, MessagePipe]]]:
    """Makes the two ends of a pipe, of which each could be in a process of its own."""
    made: list[MessagePipe] = []

    def make(memory: bool = True) -> tuple[MessagePipe, MessagePipe]:
        (a, b), (c, d) = os.pipe(), os.pipe()
        there, back = (os.memfd_create('there'), os.memfd_create('back')) if memory else (-1, -1)
        one, other = ((back, there), (os.dup(there), os.dup(back))) if memory else (None, None)
        made.extend((MessagePipe(a, d, one), MessagePipe(c, b, other)))
        return made[-2], made[-1]

    yield make
    for pipe in made:
        pipe.close()
        pipe.close()


def content(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


def test_long_messages_need_no_reader_where_there_is_memory(make_pair):
    one, other = make_pair()
    for size in (SHORT, LONG, 0, LONGER, SHORT, LONG):
        one.send(content(size)[: size // 3], content(size)[size // 3 :])
        assert other.poll(0.0)
        assert other.receive() == content(size)
        other.send(content(size)[::-1])
        assert one.receive() == content(size)[::-1]
    assert not one.poll(0.0) and not other.poll(0.0)


@pytest.mark.parametrize('reason', ['no memory', 'no room'])
def test_long_messages_go_through_the_pipe_where_no_memory_can_be_had(make_pair, reason, monkeypatch):
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, 'posix_fallocate', refuse)
    one, other = make_pair(memory=reason == 'no room')
    sender = threading.Thread(target=lambda: [one.send(content(size)) for size in (LONGER, SHORT, LONG)])
    sender.start()
    assert [other.receive() == content(size) for size in (LONGER, SHORT, LONG)] == [True] * 3
    sender.join()


def test_a_message_that_was_received_stays_when_the_next_one_comes(make_pair):
    one, other = make_pair()
    one.send(content(LONG))
    first = other.receive()
    one.send(bytes(LONG))
    assert other.receive() == bytes(LONG)
    assert first == content(LONG)


def test_the_end_of_the_other_process_is_no_message(make_pair):
    one, other = make_pair()
    other.close()
    assert one.poll(0.0) and one.receive() is None
    with pytest.raises(BrokenPipeError):
        one.send(b'')


def test_values_arrive_as_they_were_with_arrays_that_can_be_written(make_pair):
    one, other = make_pair()
    rng = np.random.default_rng(0)
    arrays = [rng.random((3, 5)), rng.random(30_001).astype(np.float32), np.arange(7, dtype=np.int8)]
    value = {'arrays': arrays, 'one': np.array(1.5), 'text': 'ä', 'rest': (None, True), 'every': arrays[0][:, ::2]}
    one.send(*to_message(value))
    got = from_message(other.receive())
    assert same(got, value)
    for array in got['arrays']:
        assert array.flags.aligned and array.flags.writeable
        array[:] = 0
    assert arrays[0].all()


def test_classes_of_the_main_script_are_sent_along():
    made = type('OfTheScript', (), {'__module__': '__main__', 'number': 3})
    assert from_message(bytearray(b''.join(to_message(made())))).number == 3
