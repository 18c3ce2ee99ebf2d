"""Chaos: a server is killed, and started again or not, under eight clients in the middle of their steps."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from waiting import PATIENCE, FakeTime, until

from internutopia.config import Config
from internutopia.remote import ServerUnavailableError, SessionLostError, VectorEnv, client
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

pytestmark = pytest.mark.slow

import_extensions()

CLIENTS = 8
ENVS = 2


class Learner(threading.Thread):
    """Steps envs until it is told to stop; makes new ones when they are lost, and ends with any other error."""

    def __init__(self, url: str):
        super().__init__(daemon=True)
        self.url = url
        self.steps = 0
        self.lost: list[SessionLostError] = []
        self.error: Exception | None = None
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set() and self.error is None:
            try:
                with closing(VectorEnv(ENVS, self.url, timeout=PATIENCE)) as envs:
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


def wait_for_all(learners: list[Learner], condition: Callable[[Learner], bool]) -> None:
    """Wait until it is true of every learner, and none has had an error."""

    def reached() -> bool:
        assert [learner.error for learner in learners] == [None] * len(learners)
        return all(map(condition, learners))

    until(reached)


def wait_for_steps(learners: list[Learner]) -> None:
    """Wait until every learner has made another step."""
    before = {learner: learner.steps for learner in learners}
    wait_for_all(learners, lambda learner: learner.steps > before[learner])


def free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.nightly
def test_clients_of_a_server_that_is_killed_go_on_with_new_sessions(
    serve_process: Callable[..., Any], config: Config
) -> None:
    options = ['--port', str(free_port()), '--user-sessions', str(CLIENTS), '--quiet']
    server = serve_process(config, *options)
    learners = [Learner(server.url) for _ in range(CLIENTS)]
    for learner in learners:
        learner.start()
    for kills in (1, 2):
        wait_for_steps(learners)
        server.stop(signal.SIGKILL)
        server = serve_process(config, *options)
        wait_for_all(learners, lambda learner: len(learner.lost) >= kills)  # noqa: B023
    wait_for_steps(learners)
    for learner in learners:
        learner.over.set()
    for learner in learners:
        learner.join(PATIENCE)
    assert not any(learner.is_alive() for learner in learners)
    assert [learner.error for learner in learners] == [None] * CLIENTS
    # also for a client that was in the middle of making its new session
    assert all(str(error).startswith(('POST ', 'GET ')) and error.code for lr in learners for error in lr.lost)


@pytest.mark.nightly
def test_clients_of_a_server_that_stays_away_get_an_error(
    serve_process: Callable[..., Any], config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve_process(config, '--user-sessions', str(CLIENTS), '--quiet')
    learners = [Learner(server.url) for _ in range(CLIENTS)]
    for learner in learners:
        learner.start()
    wait_for_steps(learners)
    monkeypatch.setattr(client, 'time', FakeTime())  # pauses take no time
    server.stop(signal.SIGKILL)
    for learner in learners:
        learner.join(PATIENCE)
    assert not any(learner.is_alive() for learner in learners)
    for learner in learners:
        assert isinstance(learner.error, ServerUnavailableError), learner.error
        assert 'no answer from' in str(learner.error)
