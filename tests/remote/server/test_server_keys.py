"""Idempotency keys: what is sent twice is done once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from raw import Raw, RawSession

from internutopia.util.encoding import JSON
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ENVS = 2
KEPT = 3


@pytest.fixture(scope='module')
def raw(serve: Callable[..., Any]) -> Raw:
    return Raw(serve(cart_pole.config(ENVS, seed=0, threads=1), kept_replies=KEPT).url)


@pytest.fixture
def session(raw: Raw) -> Iterator[RawSession]:
    made = raw.session(ENVS)
    yield made
    made.close()


def count(session: RawSession) -> int:
    """Steps of each env so far."""
    return session.state().body['steps'] // ENVS


def test_a_repeated_step_is_done_once(session: RawSession) -> None:
    actions = np.full((ENVS, 1), 0.3, np.float32)
    first, again = (session.step(actions, key='a', step_size=3) for _ in range(2))
    assert count(session) == 3
    for name, values in first.body.items():
        assert np.array_equal(values, again.body[name]), name
    assert session.step(actions, key='b').body['steps'].tolist() == [4, 4]
    assert session.step(actions).body['steps'].tolist() == [5, 5]  # without a key nothing is kept


def test_a_key_is_of_one_request(session: RawSession) -> None:
    session.step(key='a')
    others = [
        session.step(np.full((ENVS, 1), 0.1, np.float32), key='a'),
        session.step([[0.0]] * ENVS, key='a', media=JSON),
        session.caller.post(
            '/episode/vectorized_reset', {'session_id': session.id, 'episode_ids': session.episode_ids}, key='a'
        ),
    ]
    for answer in others:
        assert answer.fault == (422, 'key_reused')
    assert count(session) == 1


def test_what_was_refused_was_not_done(session: RawSession) -> None:
    assert session.step(np.full((ENVS, 1), 9.0), key='a').status == 422
    assert session.step(key='a').status == 200  # so the key is free
    assert count(session) == 1


def test_only_the_last_replies_are_kept(session: RawSession) -> None:
    for key in range(KEPT + 1):
        session.step(key=f'k{key}')
    session.step(key='k1')
    assert count(session) == KEPT + 1
    session.step(key='k0')  # forgotten
    assert count(session) == KEPT + 2


def test_all_posts_have_keys(raw: Raw) -> None:
    first, again = (raw.post('/session/create', {'num_envs': 2}, key='made') for _ in range(2))
    assert first.body == again.body
    session_id = first.body['session_id']
    handles = [raw.post('/episode/create', {'session_id': session_id}, key='handles').body for _ in range(2)]
    assert handles[0] == handles[1] and handles[0]['total'] == 1
    resets = [
        raw.post(
            '/episode/vectorized_reset',
            {'session_id': session_id, **{'episode_ids': handles[0]['episode_ids']}},
            key='r',
        )
        for _ in range(2)
    ]
    assert resets[0].body['episodes'].tolist() == resets[1].body['episodes'].tolist() == [0]
    for _ in range(2):
        assert raw.post('/session/close', {'session_id': session_id}, key='end').body == {'closed': True}


def test_a_repeat_waits_for_the_first(session: RawSession, worker_pid: Callable[[str], int]) -> None:
    """The worker stands still while both requests come in."""
    pid = worker_pid(session.id)
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(2) as threads:
            both = [threads.submit(session.step, key='a', step_size=2) for _ in range(2)]
            while session.caller.get('/status').body['sessions'][0]['state'] != 'busy':
                pass
            os.kill(pid, signal.SIGCONT)
            replies = [each.result(60).body for each in both]
    finally:
        os.kill(pid, signal.SIGCONT)
    assert count(session) == 2
    assert (replies[0]['observations'] == replies[1]['observations']).all()
