"""Ways to workers: pipes and shared memory on this machine, Ray elsewhere. They change no bit, and nothing is left."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from markers import slow_but
from ray_toys import ENVS, PROCS, Pair, kill, move, pid_of, results_of, same, wait_until

from internutopia.cluster import pipe_link, waiting, worker_pool
from internutopia.cluster.pipe_link import MessagePipe
from internutopia.config import Config
from internutopia.core.vec_env import Env

pytestmark = pytest.mark.xdist_group('ray')

PICTURE = 200  # rows and columns: more bytes than a pipe takes at once
NO_MEMORY, NO_PIPES = 'no shared memory (', 'cannot be reached but through Ray'
WAYS = ['memory', 'no memory', 'no pipes', 'elsewhere', 'one elsewhere']


def open_memories() -> list[str]:
    """Memory that this process shares with its workers."""
    links = [os.readlink(each) for each in Path('/proc/self/fd').iterdir() if each.is_symlink()]
    return sorted(link for link in links if 'memfd:internutopia-' in link)


def go_way(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers be reached in this way."""
    if way == 'no memory':

        def refuse(*_: Any) -> int:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        monkeypatch.setattr(os, 'memfd_create', refuse)
    elif way == 'no pipes':
        nobody = SimpleNamespace(**{**vars(os), 'getpid': lambda: 10**9})
        monkeypatch.setattr(pipe_link, 'os', nobody)
    elif way == 'elsewhere':
        monkeypatch.setattr(worker_pool, 'this_node', lambda: None)
    elif way == 'one elsewhere':
        nodes = iter([worker_pool.this_node(), None])
        monkeypatch.setattr(worker_pool, 'this_node', lambda: next(nodes))


@pytest.mark.parametrize('way', slow_but('no memory', of=WAYS))
def test_every_way_brings_the_same(
    cluster: None,
    make_env: Callable[..., Env],
    make_config: Callable[..., Config],
    distributed: Callable[..., Config],
    toy: Callable[..., Any],
    way: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pictures, and what of this there is to be told; `recv` waits for workers on whatever way."""
    tasks = [toy(max_steps=9, picture=PICTURE)] * ENVS
    local = make_env(make_config(tasks=tasks, env_num=ENVS, seed=0))
    before = open_memories()
    with monkeypatch.context() as patch:
        go_way(way, patch)
        ray = Env(distributed(tasks=tasks))
    try:
        assert len(open_memories()) - len(before) == {'memory': 4, 'one elsewhere': 2}.get(way, 0)
        assert same(ray.reset()[0], local.reset()[0])
        for k in range(3):
            assert same(ray.step([move(0.1 * k)] * ENVS), local.step([move(0.1 * k)] * ENVS))
        state = local.get_state()
        assert same(ray.get_state(), state)
        expected = local.step([move()] * ENVS)
        ray.send([move()] * ENVS, range(ENVS))
        got: dict[int, Any] = {}
        while len(got) < ENVS:
            *columns, env_ids = ray.recv()
            got |= dict(zip(env_ids, zip(*columns, strict=True), strict=True))
        assert same([got[env_id] for env_id in range(ENVS)], list(zip(*expected, strict=True)))
    finally:
        ray.close()
    assert open_memories() == before
    for text, its_way in ((NO_MEMORY, 'no memory'), (NO_PIPES, 'no pipes')):
        told = sum(text in message for message in caplog.messages)
        assert told == (PROCS if way == its_way else 0)


def test_a_step_is_one_message_to_each_worker_and_back_in_which_all_envs_share_arrays(
    pair: Pair, toy: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.queue(*[toy(max_steps=99)] * ENVS)
    pair.reset()
    pair.step([move()] * ENVS)  # workers know what these actions are like
    sent: list[tuple[Any, ...]] = []
    received: list[bytearray | None] = []
    send, receive = MessagePipe.send, MessagePipe.receive
    monkeypatch.setattr(MessagePipe, 'send', lambda pipe, *parts: sent.append(parts) or send(pipe, *parts))
    monkeypatch.setattr(MessagePipe, 'receive', lambda pipe: received.append(receive(pipe)) or received[-1])
    obs = pair.ray.step([{'arm': {'drive': np.full((1, 2), 0.1 * i)}} for i in range(ENVS)])[0]
    pair.local.step([{'arm': {'drive': np.full((1, 2), 0.1 * i)}} for i in range(ENVS)])
    assert len(sent) == len(received) == 2 * PROCS  # these actions are like no others before: they are checked first
    del sent[:], received[:]
    for k in range(3):
        actions = [{'arm': {'drive': np.full((1, 2), 0.1 * i * k)}} for i in range(ENVS)]
        obs = pair.ray.step(actions)[0]
        pair.local.step(actions)
    assert len(sent) == len(received) == 3 * PROCS
    assert [arrays_in(b''.join(parts)) for parts in sent] == [1] * len(sent)
    assert [arrays_in(message) for message in received if message is not None] == [len(arrays_of(obs[0]))] * len(
        received
    )


def arrays_in(message: bytes | bytearray) -> int:
    """Number of arrays that lie in a message."""
    return struct.unpack_from('<q', message)[0] - 1


def arrays_of(value: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of an observation."""
    if isinstance(value, dict | list):
        return [array for item in (value.values() if isinstance(value, dict) else value) for array in arrays_of(item)]
    return [value] if isinstance(value, np.ndarray) else []


def test_what_a_worker_has_done_is_taken_in_while_another_is_at_work(
    pair: Pair, toy: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = {'where': 'is_done', 'step': 2, 'times': 1, 'what': 'wait', 'log': str(tmp_path / 'log')}
    tasks = [toy(max_steps=2), toy(max_steps=9), toy(max_steps=9), toy(max_steps=9, fault=fault)]
    ids = pair.queue(*[toy(max_steps=9)] * ENVS, ray=tasks)
    pair.ray.reset()
    pair.ray.step([move()] * ENVS)
    counts = 0

    def interrupt(_: Any, calls: Any) -> None:
        nonlocal counts
        counts += len(calls) == 1
        if counts == 2:  # the other worker has answered, and this is the next time that something waits
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(waiting, '_CHECK_INTERVAL', 0.01)
        patch.setattr(waiting.Patience, 'count', interrupt)
        pair.ray.step([move()] * ENVS)
    assert [line['env_id'] for line in results_of(pair.ray, ids)] == [0]
    (tmp_path / 'go').touch()
    assert pair.ray.step([move()] * ENVS)[2] == [True, False, False, False]


def test_a_worker_that_dies_leaves_no_memory(pair: Pair, toy: Callable[..., Any]) -> None:
    pair.queue(*[toy(tell_pid=True, picture=PICTURE)] * ENVS)
    pair.ray.reset()
    before = open_memories()
    kill(pid_of(pair.ray, ENVS - 1))
    assert pair.ray.step([None] * ENVS)[3] == [False, False, True, True]
    pair.ray.reset([ENVS - 1])
    assert open_memories() == before


@pytest.mark.parametrize('where', ['waiting', 'in a message'])
def test_a_step_that_is_interrupted_is_made_all_the_same(
    pair: Pair, toy: Callable[..., Any], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C, here while one worker is at work; what has ended in it is recorded, unless its message was broken."""
    fault = {'where': 'is_done', 'step': 2, 'times': 1, 'what': 'wait', 'log': str(tmp_path / 'log')}
    tasks = [toy(max_steps=2), toy(max_steps=9), toy(max_steps=9), toy(max_steps=9)]
    ids = pair.queue(*tasks, ray=[*tasks[:3], toy(max_steps=9, fault=fault)])
    for env in (pair.local, pair.ray):
        env.reset()
    pair.step([move()] * ENVS)  # workers know what these actions are like

    def interrupt(*_: Any) -> None:
        wait_until((tmp_path / 'log').exists)
        raise KeyboardInterrupt

    def break_message(_: MessagePipe) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if where == 'waiting':
            patch.setattr(waiting, '_CHECK_INTERVAL', 0.01)
            patch.setattr(waiting.Patience, 'count', interrupt)
        else:
            (tmp_path / 'go').touch()
            patch.setattr(MessagePipe, 'receive', break_message)
        pair.ray.step([move()] * ENVS)
    (tmp_path / 'go').touch()
    pair.local.step([move()] * ENVS)
    if where == 'waiting':
        pair.step([move(0.3)] * ENVS)
        assert results_of(pair.ray, ids) == results_of(pair.local, ids)
        assert len(results_of(pair.ray, ids)) == 1
    else:
        obs = pair.local.step([move(0.3)] * ENVS)[0]
        assert same(pair.ray.step([move(0.3)] * ENVS)[0], obs)
    pair.clear()
    pair.queue(*tasks)
    pair.reset()
    pair.step([move()] * ENVS)
