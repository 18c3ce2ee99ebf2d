"""Chaos: a server is killed, and started again or not, under eight clients in the middle of their steps."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from internutopia.core.config import Config
from internutopia.remote import ServerUnavailableError, SessionLostError, VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

CLIENTS = 8
ENVS = 2
BOUND = 30.0  # s, within which every client goes on or has its error


class Learner(threading.Thread):
    """Steps envs until it is told to stop; makes new ones when they are lost, and ends with any other error."""

    def __init__(self, url: str, timeout: float):
        super().__init__(daemon=True)
        self.url, self.timeout = url, timeout
        self.steps = 0
        self.lost: list[SessionLostError] = []
        self.error: Exception | None = None
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set() and self.error is None:
            try:
                with closing(VectorEnv(ENVS, self.url, timeout=self.timeout)) as envs:
                    self._drive(envs)
            except SessionLostError as error:
                self.lost.append(error)
            except Exception as error:
                self.error = error

    def _drive(self, envs: VectorEnv) -> None:
        """An episode ends after 5 steps; who skipped a step, or made one twice, would see it."""
        envs.reset(seed=0)
        for step in range(1, 1_000_000):
            *_, truncated, _ = envs.step(np.zeros((ENVS, 1), np.float32))
            assert truncated.all() == (step % 6 == 5)  # the sixth starts the next episode
            self.steps += 1
            if self.over.is_set():
                return


@pytest.fixture
def config() -> Config:
    return cart_pole.config(ENVS, seed=0, threads=1, max_episode_steps=5)


def reach(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as listener:
        return listener.getsockname()[1]


def test_clients_of_a_server_that_is_killed_go_on_with_new_sessions(
    serve_process: Callable[..., Any], config: Config
) -> None:
    options = ['--port', str(free_port()), '--user-sessions', str(CLIENTS), '--quiet']
    server = serve_process(config, *options)
    learners = [Learner(server.url, BOUND) for _ in range(CLIENTS)]
    for learner in learners:
        learner.start()
    for kills in range(2):
        before = [learner.steps for learner in learners]
        reach(lambda: all(lr.steps > n for lr, n in zip(learners, before, strict=True)), f'{kills}: all step')  # noqa: B023
        server.stop(signal.SIGKILL)
        server = serve_process(config, *options)
        reach(lambda: all(len(lr.lost) > kills for lr in learners), f'{kills}: all know')  # noqa: B023
    before = [learner.steps for learner in learners]
    reach(lambda: all(lr.steps > n for lr, n in zip(learners, before, strict=True)), 'all go on')
    for learner in learners:
        learner.over.set()
    for learner in learners:
        learner.join(BOUND)
    assert not any(learner.is_alive() for learner in learners)
    assert [learner.error for learner in learners] == [None] * CLIENTS
    # also for a client that was in the middle of making its new session
    assert all(str(error).startswith(('POST ', 'GET ')) and error.code for lr in learners for error in lr.lost)


def test_clients_of_a_server_that_stays_away_get_an_error(serve_process: Callable[..., Any], config: Config) -> None:
    server = serve_process(config, '--user-sessions', str(CLIENTS), '--quiet')
    learners = [Learner(server.url, timeout=5.0) for _ in range(CLIENTS)]  # a busy machine answers, too
    for learner in learners:
        learner.start()
    reach(lambda: all(learner.steps for learner in learners), 'all step')
    server.stop(signal.SIGKILL)
    for learner in learners:
        learner.join(BOUND)
    assert not any(learner.is_alive() for learner in learners)
    for learner in learners:
        assert isinstance(learner.error, ServerUnavailableError), learner.error
        assert 'no answer from' in str(learner.error)
