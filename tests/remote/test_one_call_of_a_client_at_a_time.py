"""Remote envs in several threads and forked processes: one call at a time, in the process that made them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from faulty_proxy import FaultyProxy
from gymnasium.error import AlreadyPendingCallError
from overlaps import in_fork
from waiting import until

from internutopia.remote import VectorEnv, create_vectorized_env
from internutopia.remote.client import Client
from internutopia.remote.protocol import Version
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

ACTIONS = np.zeros((2, 1), np.float32)
Calls = dict[str, Callable[[Any], Any]]
KINDS: dict[str, tuple[Callable[[str], Any], Calls]] = {
    'RemoteVectorEnv': (
        lambda url: VectorEnv(2, url),
        {
            'step': lambda envs: envs.step(ACTIONS),
            'reset': lambda envs: envs.reset(),
            'close_extras': lambda envs: envs.close(),
        },
    ),
    'RemoteVectorizedEnv': (
        lambda url: create_vectorized_env(2, base_url=url),
        {
            'step': lambda envs: envs.step(ACTIONS),
            'reset': lambda envs: envs.reset(),
            'reset_specific_envs': lambda envs: envs.reset_specific_envs([1]),
            'close': lambda envs: envs.close(),
        },
    ),
}


@pytest.fixture(scope='module')
def url(serve: Callable[..., Any]) -> str:
    return serve(cart_pole.config(2, seed=5, threads=1)).url


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def test_no_call_is_made_while_another_thread_waits_for_its_reply(url: str, kind: str) -> None:
    make, calls = KINDS[kind]
    with FaultyProxy(url) as proxy, closing(make(proxy.url)) as envs, ThreadPoolExecutor(1, 'stepping') as pool:
        envs.reset()
        made = len(proxy.posts)
        with proxy.holding():
            step = pool.submit(calls['step'], envs)
            until(lambda: len(proxy.posts) > made)
            for name, call in calls.items():
                with pytest.raises(AlreadyPendingCallError, match=rf"^{kind}\.{name}: {kind}\.step is .* 'stepping_0'"):
                    call(envs)
        assert len(step.result()) == 5 and len(proxy.posts) == made + 1
        assert len(pool.submit(calls['reset'], envs).result()) == 2
        calls['step'](envs)


def test_a_client_makes_one_call_at_a_time(url: str) -> None:
    with FaultyProxy(url) as proxy, Client(proxy.url) as client, ThreadPoolExecutor(1) as pool:
        got = threading.Event()
        with proxy.holding(got):
            answer = pool.submit(client.get, 'version', Version)
            assert got.wait(300)
            for call in (lambda: client.get('version', Version), client.close):
                with pytest.raises(AlreadyPendingCallError, match=r'^Client\.\w+: Client\.get is under way'):
                    call()
        assert answer.result().api == client.get('version', Version).api


@pytest.mark.slow
def test_a_forked_child_leaves_the_session_to_its_parent(url: str, kind: str) -> None:
    make, calls = KINDS[kind]
    with closing(make(url)) as envs:
        envs.reset()
        for name, call in calls.items():
            answer = in_fork(lambda call=call: call(envs))
            assert name.startswith('close') and answer is None or answer.startswith(f'RuntimeError: {kind}.{name}: ')
        calls['step'](envs)


END = """
import os, sys
import numpy as np
from internutopia.remote import create_vectorized_env
envs = create_vectorized_env(2, base_url=sys.argv[1])
envs.reset()
if os.fork() == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]), len(envs.step(np.zeros((2, 1)))[0]))
"""


@pytest.mark.slow
def test_the_end_of_a_forked_child_does_not_end_the_session(url: str) -> None:
    environment = {**os.environ, 'NO_PROXY': '*'}
    program = [sys.executable, '-c', END, url]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout == '7 2\n', done.stderr


def test_remote_envs_say_why_they_cannot_be_pickled(url: str, kind: str) -> None:
    with closing(KINDS[kind][0](url)) as envs:
        with pytest.raises(TypeError, match=rf'^{kind} can be neither pickled nor copied'):
            pickle.dumps(envs)
