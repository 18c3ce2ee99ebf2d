"""A TCP proxy on loopback that cuts connections at chosen moments of HTTP/1.1 requests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Self
from urllib.parse import urlsplit

Fault = Literal['before', 'after', 'half', 'stall']
"""Cut when a request came and before it is passed on; when the server has answered, before the reply is passed on; in
the middle of the body of the reply; or keep the reply, and the connection."""


class FaultyProxy:
    """Passes requests on to a server; the next POSTs suffer the `faults`, one each, and those after them none."""

    def __init__(self, target: str):
        host, port = urlsplit(target).hostname, urlsplit(target).port
        assert host and port
        self._target = host, port
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.url = f'http://127.0.0.1:{self._listener.getsockname()[1]}'
        self.faults: list[Fault] = []
        self.posts: list[bytes] = []
        """All that came, heads only."""
        self._open = threading.Event()
        self._open.set()
        self._came = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def holding(self, came: threading.Event | None = None) -> Iterator[None]:
        """While this is entered, requests are kept back; `came` is set when there is one."""
        self._came = came or threading.Event()
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def close(self) -> None:
        """Listen no longer."""
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            while request := _message(client):
                fault = None
                if request.startswith(b'POST'):
                    self.posts.append(request.partition(b'\r\n\r\n')[0])
                    fault = self.faults.pop(0) if self.faults else None
                if fault == 'before':
                    return
                self._came.set()
                self._open.wait()
                server.sendall(request)
                reply = _message(server)
                if fault == 'stall':
                    client.recv(1)  # until the client gives up
                if fault in ('after', 'stall'):
                    return
                if fault == 'half':
                    client.sendall(reply[: (reply.index(b'\r\n\r\n') + len(reply)) // 2 + 2])
                    return
                client.sendall(reply)


def _message(source: socket.socket) -> bytes:
    """One HTTP message, head and body; empty at the end of the connection."""
    data = b''
    wanted = None
    while wanted is None or len(data) < wanted:
        try:
            part = source.recv(1 << 16)
        except OSError:
            return b''
        if not part:
            return b''
        data += part
        head, end, _ = data.partition(b'\r\n\r\n')
        if end and wanted is None:
            fields = dict(line.lower().split(b': ', 1) for line in head.split(b'\r\n')[1:])
            wanted = len(head) + len(end) + int(fields.get(b'content-length', 0))
    return data
