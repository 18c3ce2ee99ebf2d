"""Stand-in for the HTTP interface of the Hugging Face hub, with one dataset, on this machine."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from typing_extensions import override

from internutopia.asset_tools.hub import REPOSITORY, REVISION

_BLOCK = 1 << 14  # bytes that are sent at a time


@dataclass
class Hub:
    """A dataset, what was asked for, and what goes wrong.

    Attributes:
        files: contents by path.
        revisions: names under which they are known.
        error: HTTP status and `X-Error-Code` that every request gets.
        token: which requests must bring; None for a public dataset.
        cuts: numbers of the requests for data, from 0 on, whose connection ends in the middle.
        stop_at: number of the request for data from which on nothing is answered any more, but `stopped` is set.
        refuse_at: number of the request for data from which on it may not be read.
        ranges: paths and ranges of bytes that were sent whole.
    """

    files: Mapping[str, bytes]
    revisions: tuple[str, ...] = (REVISION, 'main')
    error: tuple[int, str] | None = None
    token: str | None = None
    cuts: tuple[int, ...] = ()
    stop_at: int | None = None
    refuse_at: int | None = None
    ranges: list[tuple[str, int, int]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def sent(self) -> int:
        """Bytes of files that were sent."""
        return sum(end - start for _, start, end in self.ranges)


@contextmanager
def served(hub: Hub) -> Iterator[str]:
    """The address under which a hub answers."""

    class Handler(_Handler):
        dataset = hub

    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f'http://127.0.0.1:{server.server_port}'
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    dataset: Hub

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        hub, path = self.dataset, unquote(self.path.partition('?')[0])
        if hub.error:
            return self._answer_error(*hub.error)
        if hub.token and self.headers.get('Authorization') != f'Bearer {hub.token}':
            return self._answer_error(401, 'GatedRepo')
        asked = re.fullmatch(rf'/(?:api/)?datasets/{REPOSITORY}/(revision|tree|resolve)/([^/]+)/?(.*)', path)
        if not asked:
            return self._answer_error(404, 'RepoNotFound')
        what, revision, name = asked.groups()
        if revision not in hub.revisions:
            return self._answer_error(404, 'RevisionNotFound')
        if what == 'revision':
            return self._answer_json({'id': REPOSITORY, 'sha': REVISION, 'siblings': []})
        if what == 'tree':
            found = [file for file in hub.files if file.rpartition('/')[0] == name]
            if not found:
                return self._answer_error(404, 'EntryNotFound')
            listed = [{'type': 'file', 'path': file, 'size': len(hub.files[file]), 'oid': 'f' * 40} for file in found]
            return self._answer_json(listed)
        if name not in hub.files:
            return self._answer_error(404, 'EntryNotFound')
        return self._answer_file(name)

    do_HEAD = do_GET

    def _answer_file(self, name: str) -> None:
        hub, content = self.dataset, self.dataset.files[name]
        asked = re.fullmatch(r'bytes=(\d+)-(\d+)', self.headers.get('Range', ''))
        start, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, len(content))
        with hub.lock:
            number, hub.count = hub.count, hub.count + 1
        if hub.stop_at is not None and number >= hub.stop_at:
            hub.stopped.set()
            threading.Event().wait()  # whoever asks is killed
        if hub.refuse_at is not None and number >= hub.refuse_at:
            return self._answer_error(403, '')
        self.send_response(206 if asked else 200)
        self.send_header('ETag', '"e1"')
        self.send_header('X-Repo-Commit', REVISION)
        self.send_header('Accept-Ranges', 'bytes')
        self.send_header('Content-Length', str(end - start))
        if asked:
            self.send_header('Content-Range', f'bytes {start}-{end - 1}/{len(content)}')
        self.end_headers()
        if self.command == 'HEAD':
            return
        if number in hub.cuts:
            self.wfile.write(content[start : start + (end - start) // 2])
            self.close_connection = True
            return
        for begin in range(start, end, _BLOCK):
            self.wfile.write(content[begin : min(begin + _BLOCK, end)])
        with hub.lock:
            hub.ranges.append((name, start, end))

    def _answer_json(self, data: Any) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command == 'GET':
            self.wfile.write(body)

    def _answer_error(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header('X-Error-Code', code)
        self.send_header('Content-Length', '0')
        self.end_headers()
