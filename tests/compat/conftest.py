"""What tests of compatibility share."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from internutopia import compat


@pytest.fixture
def stand_ins() -> Iterator[None]:
    """The stand-ins for modules of Isaac Sim can be imported, until the test is over."""
    assert compat.install()
    yield
    compat.uninstall()


@pytest.fixture
def mocap_server() -> Iterator[tuple[str, list[str], list[Any]]]:
    """A motion-capture server: its address, the paths that it was asked for, and what it answers one after the other.

    The last answer is given again and again.
    """
    asked: list[str] = []
    answers: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            asked.append(self.path)
            answer = None if self.path != '/results' else answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}', asked, answers
    server.shutdown()
    server.server_close()
