"""Fixtures for tests of scripts and packages for 2.x."""

from __future__ import annotations

import http.server
import importlib
import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from client_data import ROBOT, write_data

from internutopia import compat
from internutopia.core.vec_env import Env


@pytest.fixture
def mocap_server() -> Iterator[tuple[str, list[str], list[Any]]]:
    """A motion-capture server: its address, the requested paths, and its answers one after the other.

    The last answer is given again and again.
    """
    requested: list[str] = []
    answers: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            requested.append(self.path)
            answer = None if self.path != '/results' else answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}', requested, answers
    server.shutdown()
    server.server_close()


@pytest.fixture(scope='session')
def configs() -> ModuleType:
    """The client's configs: imported late, since their types are known from then on."""
    return importlib.import_module('vln_client.configs')


@pytest.fixture(scope='session')
def client_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the client evaluates in."""
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', '`torch.jit', DeprecationWarning)  # clients of 2.x have nothing else
        return write_data(tmp_path_factory.mktemp('client') / 'data')


@pytest.fixture(scope='session')
def robot_usd(client_data: Path) -> str:
    """The robot of the client."""
    return str(client_data / ROBOT)


@pytest.fixture
def clean_process() -> Iterator[None]:
    """What the client has changed in this process is undone after the test."""
    yield
    compat.uninstall()
    if 'torch' in sys.modules:  # its tasks ask for it
        sys.modules['torch'].use_deterministic_algorithms(False)


@pytest.fixture
def client_env(client_data: Path, clean_process: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Env]]:
    """Makes the Env of the client's settings of that name, with changes, for some of its episodes."""
    envs: list[Env] = []

    def make(name: str, episodes: list[str], **changes: Any) -> Env:
        monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')
        settings = importlib.import_module(f'vln_client.settings.{name}').settings | changes
        dataset = importlib.import_module('vln_client.dataset').Dataset(client_data, settings['split'], set())
        by_name = {each['path_key']: each for each in dataset.episodes}
        dataset.episodes = [by_name[episode] for episode in episodes]
        envs.append(Env(importlib.import_module('vln_client.evaluate').make_config(settings, dataset)))
        return envs[-1]

    yield make
    for env in envs:
        env.close()
