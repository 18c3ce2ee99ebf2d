"""A connection that sends bytes as they are, as slowly as it likes, from any address of this machine."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, Self
from urllib.parse import urlsplit

from raw import RawSession
from waiting import PATIENCE, until

from internutopia.remote.protocol import PREFIX
from internutopia.util.encoding import JSON, encode


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def fault(self) -> tuple[int, str]:
        """Status and code of an error in JSON."""
        return self.status, json.loads(self.body)['error']['code']


class Wire:
    """A TCP connection to a server, from an address such as 127.0.0.2."""

    def __init__(self, url: str, address: str = '127.0.0.1', token: str | None = None):
        parts = urlsplit(url)
        self._lines = [] if token is None else [f'Authorization: Bearer {token}']
        self.sock = socket.create_connection((parts.hostname, parts.port), PATIENCE, source_address=(address, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def head(self, method: str, path: str, *lines: str) -> Self:
        """Send the header of a request."""
        head = [
            f'{method} {path} HTTP/1.1',
            'Host: localhost',
            'Accept: application/json',
            *self._lines,
            *lines,
            '',
            '',
        ]
        return self.send('\r\n'.join(head).encode())

    def step(self, session: RawSession, *lines: str, **fields: Any) -> Self:
        """Send a step of all envs of a session."""
        message = {'session_id': session.id, 'episode_ids': session.episode_ids, **fields}
        body = encode({**message, 'actions': [0.0] * len(session.episode_ids)}, JSON)
        path = f'{PREFIX}/episode/vectorized_step'
        return self.head('POST', path, f'Content-Type: {JSON}', f'Content-Length: {len(body)}', *lines).send(body)

    def send(self, data: bytes) -> Self:
        """Send bytes."""
        self.sock.sendall(data)
        return self

    def reply(self) -> Reply:
        """The next reply; ConnectionError if there is none."""
        response = HTTPResponse(self.sock)
        try:
            response.begin()
            body = response.read()
        except HTTPException as error:
            raise ConnectionError(repr(error)) from error
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)

    def ended(self) -> bool:
        """Whether the server ends the connection, whatever else it has to say."""
        try:
            while self.sock.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        return True

    def over(self) -> bool:
        """Whether the server has ended the connection."""
        try:
            while select.select([self.sock], [], [], 0)[0]:
                if not self.sock.recv(1 << 16):
                    return True
        except ConnectionError:
            return True
        return False

    def floods(self, data: bytes, most: int) -> int:
        """Send the same again and again until the server ends the connection; returns the bytes that went out."""
        sent = 0
        try:
            while sent < most:
                self.sock.sendall(data)
                sent += len(data)
        except ConnectionError:
            pass
        return sent


def answered(wires: Iterable[Wire], count: int) -> list[Wire]:
    """The first connections on which something comes from the server, as soon as there are so many."""
    sockets = {wire.sock: wire for wire in wires}
    ready: list[Any] = []

    def enough() -> bool:
        ready[:] = select.select(list(sockets), [], [], 0)[0]
        return len(ready) >= count

    until(enough)
    return [sockets[sock] for sock in ready]
